# find_package(mscclc) defines the target mscclc::mscclc. Where this file lies says where the rest
# is: the tree may be moved.
get_filename_component(_mscclc_folder "${CMAKE_CURRENT_LIST_DIR}" REALPATH) # /lib may be /usr/lib
get_filename_component(_mscclc_prefix "${_mscclc_folder}/../../.." ABSOLUTE)

foreach(_mscclc_file include/mscclc.h lib/libmscclc.so.0)
  if(NOT EXISTS "${_mscclc_prefix}/${_mscclc_file}")
    set(mscclc_FOUND FALSE)
    set(mscclc_NOT_FOUND_MESSAGE
        "${_mscclc_prefix}/${_mscclc_file} is missing: install the package again")
    return()
  endif()
endforeach()

if(NOT TARGET mscclc::mscclc)
  add_library(mscclc::mscclc SHARED IMPORTED)
  set_target_properties(mscclc::mscclc PROPERTIES
    IMPORTED_LOCATION "${_mscclc_prefix}/lib/libmscclc.so.0"
    IMPORTED_SONAME libmscclc.so.0
    INTERFACE_INCLUDE_DIRECTORIES "${_mscclc_prefix}/include")
endif()
