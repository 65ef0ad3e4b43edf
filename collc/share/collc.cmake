# collc_add_library(TARGET SPEC FILE.coll
#                   [STATIC | SHARED | OBJECT]
#                   [PREFIX NAME] [COLLECTIVES NAME...] [OPTIONS OPTION...])
#
# Compiles a specification to one C library of all its collectives (or of those named), against MPI. The functions
# are called PREFIX_COLLECTIVE and declared in PREFIX.h, which targets that link the library find; PREFIX is the
# target's name unless given, made a C identifier. OPTIONS go to collc, e.g. -DN=8 or -O3. Everything is compiled
# again when the specification, or a file that it includes, changes.
#
# COLLC_EXECUTABLE names the collc to be used. CMake 3.20 or later.

find_program(COLLC_EXECUTABLE collc HINTS ENV VIRTUAL_ENV PATH_SUFFIXES bin DOC "the collc compiler")

# The rules that collc writes name files by absolute paths, which Ninja is to be given as it names them itself.
cmake_policy(PUSH)
if(POLICY CMP0116)
  cmake_policy(SET CMP0116 NEW)
endif()

function(collc_add_library target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "STATIC;SHARED;OBJECT" "SPEC;PREFIX" "COLLECTIVES;OPTIONS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "collc_add_library(${target}): unknown argument ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_SPEC)
    message(FATAL_ERROR "collc_add_library(${target}): no specification, give SPEC FILE.coll")
  endif()
  if(NOT COLLC_EXECUTABLE)
    message(FATAL_ERROR "collc_add_library(${target}): there is no collc; set COLLC_EXECUTABLE")
  endif()
  if(CMAKE_VERSION VERSION_LESS 3.20)
    message(FATAL_ERROR "collc_add_library needs CMake 3.20 or later, this is ${CMAKE_VERSION}")
  endif()
  set(type)
  foreach(kind STATIC SHARED OBJECT)
    if(arg_${kind})
      list(APPEND type ${kind})
    endif()
  endforeach()
  if(NOT arg_PREFIX)
    string(MAKE_C_IDENTIFIER "${target}" arg_PREFIX)
  endif()
  get_filename_component(spec "${arg_SPEC}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
  set(chosen)
  foreach(name IN LISTS arg_COLLECTIVES)
    list(APPEND chosen --collective "${name}")
  endforeach()

  set(folder "${CMAKE_CURRENT_BINARY_DIR}/${target}.collc")
  set(source "${folder}/${arg_PREFIX}.c")
  set(header "${folder}/${arg_PREFIX}.h")
  file(MAKE_DIRECTORY "${folder}")
  add_custom_command(
    OUTPUT "${source}" "${header}"
    COMMAND "${COLLC_EXECUTABLE}" compile "${spec}" -t "mpi-c{library=${arg_PREFIX}}" -o "${folder}/"
            -MD -MF "${source}.d" -fdepfile-absolute ${chosen} ${arg_OPTIONS}
    DEPENDS "${spec}"
    DEPFILE "${source}.d"
    COMMENT "Compiling collectives ${arg_PREFIX}.c"
    VERBATIM)

  if(NOT TARGET MPI::MPI_C)
    find_package(MPI REQUIRED COMPONENTS C)
  endif()
  add_library(${target} ${type} "${source}" "${header}")
  target_include_directories(${target} PUBLIC "${folder}")
  target_link_libraries(${target} PUBLIC MPI::MPI_C)
  set_target_properties(${target} PROPERTIES
    C_STANDARD 99 C_VISIBILITY_PRESET hidden POSITION_INDEPENDENT_CODE ON)
endfunction()

cmake_policy(POP)
