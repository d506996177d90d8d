# sluice_module(NAME [SOURCES file...] [DEPS target...] [PRIVATE_DEPS target...]):
#   The library of one folder of src/, of all its .cc files unless told otherwise.
# sluice_flags(TARGET library|program|tool|test|heavy_test):
#   Gives a target the project's warnings and sanitizers, and its kind of code. Code may go into any
#   binary, into programs only, or into tests only. A tool is a program that is mostly flags and
#   tables. Tools, and tests that are not heavy, are quick to compile rather than to run. Heavy
#   tests are optimized as far as that takes no longer than it saves.

function(sluice_flags target kind)
  set(warnings -Wall -Wextra -Wconversion -Wshadow)
  list(JOIN warnings "," cuda_warnings)
  target_compile_options(${target} PRIVATE
    "$<$<COMPILE_LANGUAGE:CXX>:${warnings}>"
    "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=${cuda_warnings}>")
  if(SLUICE_WERROR)
    target_compile_options(${target} PRIVATE
      $<$<COMPILE_LANGUAGE:CXX>:-Werror>
      "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:-Werror all-warnings -Xcompiler=-Werror>")
  endif()
  if(SLUICE_SANITIZE)
    sluice_sanitizers(${target} sanitizers)
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${sanitizers}>")
    target_link_options(${target} PRIVATE -fsanitize=${SLUICE_SANITIZE})
  endif()
  if(NOT kind STREQUAL library AND NOT SLUICE_SMPI)  # its programs are loaded
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fPIE>)
  endif()
  if(kind STREQUAL test AND SLUICE_BY_CLANG)
    set_target_properties(${target} PROPERTIES CXX_COMPILER_LAUNCHER ${SLUICE_BY_CLANG})
    target_compile_options(${target} PRIVATE
      $<$<COMPILE_LANGUAGE:CXX>:-O0;-Wno-sign-conversion>)  # GCC means -Wconversion without it
  elseif(kind MATCHES "^(tool|test)$")
    target_compile_options(${target} PRIVATE $<IF:$<CONFIG:Debug>,-O0,-Og>)
  elseif(kind STREQUAL heavy_test)
    target_compile_options(${target} PRIVATE -O1)
  endif()
  # Joined with others, a source sees names that are not its own.
  if(SLUICE_UNITY AND kind MATCHES test)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-shadow>)
  endif()
  # Undefined behaviour is looked for in what is tested: it makes code a quarter slower to compile.
  if(SLUICE_SANITIZE MATCHES undefined AND kind MATCHES test)
    target_compile_options(${target} PRIVATE -fno-sanitize=undefined)
  endif()
  sluice_reuse_pch(${target} ${kind})
endfunction()

function(sluice_module name)
  cmake_parse_arguments(ARG "ALONE" "" "SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  if(NOT ARG_SOURCES)
    file(GLOB ARG_SOURCES CONFIGURE_DEPENDS *.cc)
  endif()
  add_library(sluice_${name} STATIC ${ARG_SOURCES})
  add_library(sluice::${name} ALIAS sluice_${name})
  set_target_properties(sluice_${name} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(sluice_${name}
    PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
           $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
    PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_compile_features(sluice_${name} PUBLIC cxx_std_20)
  target_link_libraries(sluice_${name} PUBLIC ${ARG_DEPS} PRIVATE ${ARG_PRIVATE_DEPS})
  sluice_flags(sluice_${name} library)
  if(NOT ARG_ALONE)
    sluice_unity(sluice_${name})
  endif()
  set_property(GLOBAL APPEND PROPERTY SLUICE_INSTALL_TARGETS sluice_${name})
endfunction()
