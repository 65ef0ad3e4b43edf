"""The attributes that say how Graphviz draws a graph, which mean nothing for a network."""

from __future__ import annotations

__all__ = ["DRAWN"]

_NAMES = """
Damping K URL arrowhead arrowsize arrowtail area bb beautify bgcolor center charset class cluster clusterrank color
colorscheme comment compound concentrate constraint decorate defaultdist dim dimen dir diredgeconstraints distortion
dpi edgeURL edgehref edgetarget edgetooltip epsilon_layout esep fillcolor fixedsize fontcolor fontname fontnames
fontpath fontsize forcelabels gradientangle group headURL head_lp headclip headhref headlabel headport headtarget
headtooltip height href image imagepath imagepos imagescale inputscale label_scheme labelURL labelangle labeldistance
labelfloat labelfontcolor labelfontname labelfontsize labelhref labeljust labelloc labeltarget labeltooltip landscape
layer layers layerselect layersep layout len levels levelsgap lhead lheight linelength lp ltail lwidth margin maxiter
mclimit mindist minlen mode model newrank nodesep nojustify normalize notranslate nslimit nslimit1 oneblock ordering
orientation outputorder overlap overlap_scaling overlap_shrink pack packmode pad page pagedir pencolor penwidth
peripheries pin pos quadtree quantum radius rank rankdir ranksep ratio rects regular remincross repulsiveforce
resolution root rotate rotation samehead sametail samplepoints scale searchsize sep shape shapefile showboxes sides
size skew smoothing sortv splines start style stylesheet tailURL tail_lp tailclip tailhref taillabel tailport
tailtarget tailtooltip target tooltip truecolor vertices viewport voro_margin weight width xdotversion xlabel xlp z
"""

DRAWN = frozenset(_NAMES.split())
