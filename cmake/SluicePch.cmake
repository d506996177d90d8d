# Precompiled headers: what most files include, parsed once for all code of a kind.
#
# sluice_pch(KIND HEADERS header... [DEPS target...]) makes those for a kind of code (sluice_flags).
# sluice_reuse_pch(TARGET KIND) gives them to a target.
# sluice_source_options(OPTIONS option... SOURCES file...) compiles files with options of their own,
# and without these headers: with them, GCC 12 ignores such options in part, or crashes.
#
# They only save time: each file includes what it uses. A kind is what is compiled alike: whether it
# is linked into programs only decides the compiler's -fPIC or -fPIE, and GoogleTest's target
# defines a macro.
option(SLUICE_PCH "Precompile the headers that most files include" OFF)
# Compiler caches and clang-tidy do better without.
if(CMAKE_CXX_COMPILER_LAUNCHER)
  set(SLUICE_PCH OFF)
endif()

# Tests are compiled by clang where it is there, and not optimized: GCC takes twice as long. What
# they test, and what takes long to run, is compiled by the compiler of the project.
if(SLUICE_PCH AND NOT SLUICE_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  set(SLUICE_BY_CLANG ${CMAKE_CURRENT_LIST_DIR}/by_clang.sh)
  execute_process(COMMAND ${SLUICE_BY_CLANG} c++ -std=c++20 -fsyntax-only -x c++ -include string -
                  INPUT_FILE /dev/null RESULT_VARIABLE result OUTPUT_QUIET ERROR_QUIET)
  if(NOT result EQUAL 0)
    unset(SLUICE_BY_CLANG)
  endif()
endif()

function(sluice_pch kind)
  if(NOT SLUICE_PCH)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "HEADERS;DEPS" ${ARGN})
  set(source ${PROJECT_BINARY_DIR}/pch/${kind}.cc)
  file(CONFIGURE OUTPUT ${source} CONTENT "// Takes part in making the precompiled headers.\n")
  add_library(sluice_${kind}_pch OBJECT ${source})
  target_link_libraries(sluice_${kind}_pch PRIVATE ${ARG_DEPS})
  target_precompile_headers(sluice_${kind}_pch PRIVATE ${ARG_HEADERS})
  sluice_flags(sluice_${kind}_pch ${kind})
endfunction()

function(sluice_reuse_pch target kind)
  if(TARGET sluice_${kind}_pch AND NOT target STREQUAL sluice_${kind}_pch)
    target_precompile_headers(${target} REUSE_FROM sluice_${kind}_pch)
  endif()
endfunction()

function(sluice_source_options)
  cmake_parse_arguments(ARG "" "" "OPTIONS;SOURCES" ${ARGN})
  set_source_files_properties(${ARG_SOURCES} PROPERTIES COMPILE_OPTIONS "${ARG_OPTIONS}"
                                                        SKIP_PRECOMPILE_HEADERS ON)
endfunction()

# What at least one file in ten includes: each file pays for the size of all of it.
set(SLUICE_PCH_HEADERS
  <algorithm> <array> <cstddef> <cstdint> <cstring> <functional> <limits> <map> <memory> <optional>
  <set> <string> <utility> <vector> "\"absl/status/status.h\"" "\"absl/status/statusor.h\""
  "\"absl/strings/str_cat.h\"" "\"absl/strings/str_join.h\"" "\"absl/types/span.h\"")
