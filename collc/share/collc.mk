# A rule for GNU Make: NAME.c and NAME.h, a library of all collectives of NAME.coll, functions NAME_COLLECTIVE.
#
#   COLLC_SPECS := pod.coll
#   include $(shell collc --cmake-dir)/collc.mk
#
#   app: app.c pod.c pod.h
#   	mpicc -O2 -o $@ app.c pod.c
#
# NAME must be a C identifier. COLLC is the compiler, COLLCFLAGS are further options, e.g. -DN=8. Files that a
# specification includes are known after the first run, for the specifications in COLLC_SPECS (NAME.coll.d beside
# each).

COLLC ?= collc
COLLCFLAGS ?=

%.c %.h: %.coll
	$(COLLC) compile $< -t 'mpi-c{library=$(notdir $*)}' -o $(@D)/ -MD -MP -MF $<.d -MT '$*.c $*.h' $(COLLCFLAGS)

-include $(addsuffix .d,$(COLLC_SPECS))
