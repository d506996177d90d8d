# Unity builds: several sources of a folder compiled at once.
#
# sluice_unity(TARGET) joins up to 8 sources of each folder of the target. A source with options of
# its own (sluice_source_options) stays alone. One with a UNITY_GROUP keeps it.
#
# It only saves time: each file includes what it uses, and compiles by itself too. So names of one
# folder's sources differ, also those that only one source sees.
option(SLUICE_UNITY "Compile several sources of a folder at once" OFF)
# Compiler caches and clang-tidy do better without.
if(CMAKE_CXX_COMPILER_LAUNCHER)
  set(SLUICE_UNITY OFF)
endif()

function(sluice_unity target)
  if(NOT SLUICE_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  get_target_property(base ${target} SOURCE_DIR)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  foreach(source ${sources})
    if(NOT source MATCHES "\\.cc$")
      continue()
    endif()
    get_filename_component(path ${source} ABSOLUTE BASE_DIR ${base})
    get_property(has_group SOURCE ${path} PROPERTY UNITY_GROUP SET)
    if(has_group)
      continue()
    endif()
    file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${path})
    get_filename_component(folder ${folder} DIRECTORY)
    string(MAKE_C_IDENTIFIER ${folder} group)
    if(NOT DEFINED count_${group})
      set(count_${group} 0)
    endif()
    math(EXPR batch "${count_${group}} / 8")
    math(EXPR count_${group} "${count_${group}} + 1")
    set_property(SOURCE ${path} TARGET_DIRECTORY ${target}
                 PROPERTY UNITY_GROUP ${group}_${batch})
  endforeach()
endfunction()
