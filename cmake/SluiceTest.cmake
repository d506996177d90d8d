# Tests. tests/ has those of one process, without MPI, which run under the sanitizers, too.
# mpi_tests/ has those of several processes.
#
# sluice_test(NAME [THREADS] [HEAVY] [PURE] [PROGRAM name] SOURCES file... [ALONE file...]
#             [CASES pattern...] DEPS target...)
#   One ctest entry, NAME. Its program has all suites of this folder: FOLDER_tests, or, of those
#   that are PURE, FOLDER_pure_tests. PROGRAM names another one. The entry runs the tests that are
#   in SOURCES and ALONE, and those whose names match a pattern of CASES, such as the tests of a
#   contract that SOURCES instantiate.
#   ALONE: more sources. Each is compiled by itself, because it names something as others do, or
#   with those that sluice_apart gives it. It is ALONE in each program of its folder then.
#   THREADS: it has some, so that the thread sanitizer can find something; such tests have the label
#   `threads` and their programs make up the target sluice_thread_tests. Of tests with stand-ins for
#   a GPU, most of whose threads are its own, the label is `cuda_threads`, and their programs are
#   part of sluice_all_thread_tests alone. HEAVY: it computes so much itself that it is worth
#   optimizing under a sanitizer, and starts before others. PURE: what it tests computes on values,
#   without memory or descriptors of its own, or is part of programs only, not of the library; such
#   tests have the label `pure` and are not part of the target sluice_memory_tests. What is PURE and
#   HEAVY is optimized everywhere.
# sluice_apart(GROUP file...) joins files that are ALONE with each other.
# sluice_test_program(NAME [OWN_MAIN] SOURCES file... DEPS target...) makes or extends a program
#   that sluice_test names as PROGRAM. OWN_MAIN: its sources have a main.
# sluice_test_support(NAME [HEAVY] [PURE] [ARCHIVE] SOURCES file... [ALONE file...] DEPS target...)
#   What several programs share, compiled once. Only who names it in DEPS links its objects. With
#   ARCHIVE, who names it in DEPS passes it on; such a one has no tests of its own.
# sluice_again(NAME OTHER ENVIRONMENT variable...) runs the tests of OTHER once more.
# sluice_skipped_test(NAME REASON) stands in for a test that cannot be built here.
#
# The target sluice_tests builds the programs of all these. A test that skips something counts as
# skipped (SKIP_RETURN_CODE), even if all else in it passed; scripts/build/skipped.py lists what.
function(sluice_test_flags name heavy pure)
  if(heavy AND (pure OR CMAKE_BUILD_TYPE STREQUAL Debug))
    sluice_flags(${name} heavy_test)
  else()
    sluice_flags(${name} test)
  endif()
endfunction()

function(sluice_test_support name)
  cmake_parse_arguments(ARG "HEAVY;PURE;ARCHIVE" "" "SOURCES;ALONE;DEPS" ${ARGN})
  set(kind OBJECT)
  if(ARG_ARCHIVE)
    set(kind STATIC)
  endif()
  add_library(${name} ${kind} EXCLUDE_FROM_ALL ${ARG_SOURCES})
  sluice_unity(${name})
  target_sources(${name} PRIVATE ${ARG_ALONE})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${name} PUBLIC ${ARG_DEPS} GTest::gmock GTest::gtest)
  sluice_test_flags(${name} ${ARG_HEAVY} ${ARG_PURE})
endfunction()

# Adds to a part of a program those sources that no part of the program has yet.
function(sluice_add_sources part program)
  cmake_parse_arguments(ARG "" "" "SOURCES;ALONE" ${ARGN})
  get_target_property(taken ${program} SLUICE_SOURCES)
  foreach(kind SOURCES ALONE)
    set(${kind})
    foreach(source IN LISTS ARG_${kind})
      get_filename_component(path ${source} ABSOLUTE)
      if(NOT path IN_LIST taken)
        list(APPEND ${kind} ${path})
        list(APPEND taken ${path})
      endif()
    endforeach()
    target_sources(${part} PRIVATE ${${kind}})
  endforeach()
  sluice_unity_sources(${part} ${SOURCES})
  set_property(TARGET ${program} PROPERTY SLUICE_SOURCES ${taken})
endfunction()

function(sluice_test_program name)
  cmake_parse_arguments(ARG "OWN_MAIN" "" "SOURCES;ALONE;DEPS" ${ARGN})
  if(NOT TARGET ${name})
    add_executable(${name})
    if(NOT ARG_OWN_MAIN)
      target_link_libraries(${name} PRIVATE sluice_test_main)
    endif()
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src
                                               ${PROJECT_SOURCE_DIR}/tests)
    target_link_libraries(${name} PRIVATE GTest::gmock GTest::gtest)
    sluice_flags(${name} test)
    set_property(TARGET ${name} PROPERTY SLUICE_SOURCES "")
  endif()
  sluice_add_sources(${name} ${name} SOURCES ${ARG_SOURCES} ALONE ${ARG_ALONE})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
endfunction()

# The sources of a program that are optimized where its others are not.
function(sluice_heavy_sources program)
  cmake_parse_arguments(ARG "" "" "SOURCES;ALONE;DEPS" ${ARGN})
  if(NOT TARGET ${program}_heavy)
    add_library(${program}_heavy OBJECT EXCLUDE_FROM_ALL)
    target_include_directories(${program}_heavy PRIVATE ${PROJECT_SOURCE_DIR}/src
                                                        ${PROJECT_SOURCE_DIR}/tests)
    target_link_libraries(${program}_heavy PRIVATE GTest::gmock GTest::gtest)
    sluice_flags(${program}_heavy heavy_test)
  endif()
  sluice_test_program(${program} DEPS ${program}_heavy ${ARG_DEPS})
  sluice_add_sources(${program}_heavy ${program} SOURCES ${ARG_SOURCES} ALONE ${ARG_ALONE})
  target_link_libraries(${program}_heavy PRIVATE ${ARG_DEPS})
endfunction()

function(sluice_apart group)
  set_property(SOURCE ${ARGN} PROPERTY UNITY_GROUP apart_${group})
endfunction()

# sluice_which_tests(VARIABLE FILES file... CASES pattern...): the argument by which a program of
# tests is told which of its tests to run (main/which_tests.h).
function(sluice_which_tests variable)
  cmake_parse_arguments(ARG "" "" "FILES;CASES" ${ARGN})
  set(words)
  foreach(file IN LISTS ARG_FILES)
    get_filename_component(file ${file} ABSOLUTE)
    string(REGEX REPLACE "^.*/([^/]+/[^/]+)\\.[a-z]+$" "\\1" word ${file})
    list(APPEND words ${word})
  endforeach()
  list(APPEND words ${ARG_CASES})
  list(JOIN words "," words)
  set(${variable} --which=${words} PARENT_SCOPE)
endfunction()

function(sluice_test name)
  cmake_parse_arguments(ARG "THREADS;HEAVY;PURE" "PROGRAM" "SOURCES;ALONE;CASES;DEPS" ${ARGN})
  set(program ${ARG_PROGRAM})
  if(NOT program)
    file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR}/tests ${CMAKE_CURRENT_SOURCE_DIR})
    string(REPLACE / _ folder ${folder})
    set(program ${folder}_tests)
    if(ARG_PURE)
      set(program ${folder}_pure_tests)
    endif()
  endif()
  if(ARG_HEAVY AND (ARG_PURE OR CMAKE_BUILD_TYPE STREQUAL Debug))
    sluice_heavy_sources(${program} SOURCES ${ARG_SOURCES} ALONE ${ARG_ALONE} DEPS ${ARG_DEPS})
  else()
    sluice_test_program(${program} SOURCES ${ARG_SOURCES} ALONE ${ARG_ALONE} DEPS ${ARG_DEPS})
  endif()
  sluice_which_tests(which FILES ${ARG_SOURCES} ${ARG_ALONE} CASES ${ARG_CASES})
  set_property(GLOBAL PROPERTY SLUICE_COMMAND_${name} ${program} ${which})
  add_test(NAME ${name} COMMAND ${program} ${which})
  set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77)
  if(ARG_HEAVY)
    set_tests_properties(${name} PROPERTIES COST 30)
  endif()
  if(ARG_THREADS AND name MATCHES "^cuda_")
    add_dependencies(sluice_all_thread_tests ${program})
    set_tests_properties(${name} PROPERTIES LABELS cuda_threads)
  elseif(ARG_THREADS)
    add_dependencies(sluice_thread_tests ${program})
    set_tests_properties(${name} PROPERTIES LABELS threads)
  endif()
  if(ARG_PURE)
    set_property(TEST ${name} APPEND PROPERTY LABELS pure)
    add_dependencies(sluice_tests ${program})
  else()
    add_dependencies(sluice_memory_tests ${program})
  endif()
endfunction()

function(sluice_again name other)
  cmake_parse_arguments(ARG "" "" "ENVIRONMENT" ${ARGN})
  get_property(command GLOBAL PROPERTY SLUICE_COMMAND_${other})
  add_test(NAME ${name} COMMAND ${command})
  set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77
                                          ENVIRONMENT "${ARG_ENVIRONMENT}")
endfunction()

function(sluice_skipped_test name reason)
  add_test(NAME ${name} COMMAND ${CMAKE_COMMAND} -E echo "Not built: ${reason}")
  set_tests_properties(${name} PROPERTIES SKIP_REGULAR_EXPRESSION "^Not built: ")
endfunction()
