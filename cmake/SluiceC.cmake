# Programs in C, for the C API: SLUICE_HAVE_C says whether this tree can have any.
#
# sluice_c_program(NAME FILE...): one that links libsluice.so, with the project's warnings and
# sanitizers.
set(SLUICE_HAVE_C OFF)
if(TARGET sluice_c AND (SLUICE_BUILD_TESTS OR SLUICE_BUILD_EXAMPLES))
  include(CheckLanguage)
  check_language(C)
  if(CMAKE_C_COMPILER)
    enable_language(C)
    # One compiler's sanitizers are not another one's.
    if(NOT SLUICE_SANITIZE OR CMAKE_C_COMPILER_ID STREQUAL CMAKE_CXX_COMPILER_ID)
      set(SLUICE_HAVE_C ON)
    endif()
  endif()
endif()

function(sluice_c_program name)
  add_executable(${name} ${ARGN})
  set_target_properties(${name} PROPERTIES C_STANDARD 11 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF)
  target_compile_options(${name} PRIVATE -pedantic -Wall -Wextra)
  if(SLUICE_WERROR)
    target_compile_options(${name} PRIVATE -Werror)
  endif()
  if(SLUICE_SANITIZE)
    sluice_sanitizers(${name} sanitizers)
    target_compile_options(${name} PRIVATE ${sanitizers})
    target_link_options(${name} PRIVATE -fsanitize=${SLUICE_SANITIZE})
  endif()
  target_link_libraries(${name} PRIVATE sluice::c)
endfunction()
