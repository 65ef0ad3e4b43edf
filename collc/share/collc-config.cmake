# find_package(collc CONFIG HINTS ...): the function collc_add_library.
include("${CMAKE_CURRENT_LIST_DIR}/collc.cmake")
