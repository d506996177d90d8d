# Unity builds: several sources of a folder compiled at once.
#
# sluice_unity(TARGET) joins up to 16 sources of each folder of the target. A source with options of
# its own (sluice_source_options) stays alone. One with a UNITY_GROUP keeps it.
#
# It only saves time: each file includes what it uses, and compiles by itself too. So names of one
# folder's sources differ, also those that only one source sees.
option(SLUICE_UNITY "Compile several sources of a folder at once" OFF)
# Compiler caches and clang-tidy do better without.
if(CMAKE_CXX_COMPILER_LAUNCHER)
  set(SLUICE_UNITY OFF)
endif()

# A batch compiles faster the larger it is, as long as there is one for each core.
set(SLUICE_UNITY_BATCH 16)

function(sluice_unity target)
  get_target_property(sources ${target} SOURCES)
  get_target_property(base ${target} SOURCE_DIR)
  set(paths)
  foreach(source IN LISTS sources)
    get_filename_component(path ${source} ABSOLUTE BASE_DIR ${base})
    list(APPEND paths ${path})
  endforeach()
  sluice_unity_sources(${target} ${paths})
endfunction()

# sluice_unity_sources(TARGET FILE...) joins these, whose paths are absolute, and no others. May be
# called again with more.
function(sluice_unity_sources target)
  if(NOT SLUICE_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  foreach(path IN LISTS ARGN)
    if(NOT path MATCHES "\\.cc$")
      continue()
    endif()
    get_property(has_group SOURCE ${path} TARGET_DIRECTORY ${target} PROPERTY UNITY_GROUP SET)
    if(has_group)
      continue()
    endif()
    file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${path})
    get_filename_component(folder ${folder} DIRECTORY)
    string(MAKE_C_IDENTIFIER ${folder} group)
    get_property(count TARGET ${target} PROPERTY SLUICE_UNITY_${group})
    if(NOT count)
      set(count 0)
    endif()
    math(EXPR batch "${count} / ${SLUICE_UNITY_BATCH}")
    math(EXPR count "${count} + 1")
    set_property(TARGET ${target} PROPERTY SLUICE_UNITY_${group} ${count})
    set_property(SOURCE ${path} TARGET_DIRECTORY ${target}
                 PROPERTY UNITY_GROUP ${group}_${batch})
  endforeach()
endfunction()
