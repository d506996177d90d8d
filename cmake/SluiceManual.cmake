# Manual pages and bash completions of the programs, made by scripts/build/manual out of --help.
#
# sluice_manual(PROGRAM): both for one program, as files below share/ of the build folder.
# SLUICE_MANUAL says whether that is done: not where the programs cannot run while building.
find_package(Python3 3.9 COMPONENTS Interpreter QUIET)
if(Python3_Interpreter_FOUND AND NOT CMAKE_CROSSCOMPILING AND NOT SLUICE_SMPI
   AND NOT SLUICE_SANITIZE)
  set(SLUICE_MANUAL ON)
else()
  set(SLUICE_MANUAL OFF)
endif()

function(sluice_manual program)
  if(NOT SLUICE_MANUAL)
    return()
  endif()
  set(scripts ${PROJECT_SOURCE_DIR}/scripts/build/manual)
  set(share ${CMAKE_BINARY_DIR}/share)
  set(page ${share}/man/man1/${program}.1)
  set(completion ${share}/bash-completion/completions/${program})
  file(MAKE_DIRECTORY ${share}/man/man1 ${share}/bash-completion/completions)
  add_custom_command(OUTPUT ${page} ${completion}
    COMMAND ${CMAKE_COMMAND} -E env PYTHONDONTWRITEBYTECODE=1 ${Python3_EXECUTABLE}
            ${scripts}/make_manual.py $<TARGET_FILE:${program}> ${PROJECT_VERSION} ${page}
    COMMAND ${CMAKE_COMMAND} -E env PYTHONDONTWRITEBYTECODE=1 ${Python3_EXECUTABLE}
            ${scripts}/make_completion.py $<TARGET_FILE:${program}> ${completion}
    DEPENDS ${program} ${scripts}/help_page.py ${scripts}/make_manual.py
            ${scripts}/make_completion.py
    COMMENT "Manual page and completion of ${program}" VERBATIM)
  add_custom_target(${program}-manual ALL DEPENDS ${page} ${completion})
endfunction()

# What --model, --system and --cases find by name, beside the programs of the build folder, too.
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/share/sluice/cases)
file(REMOVE_RECURSE ${CMAKE_BINARY_DIR}/share/sluice/models)  # a link, of older builds
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/share/sluice/models)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS bench/models/make_models.py)
if(Python3_Interpreter_FOUND)
  execute_process(COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/bench/models/make_models.py
                          ${CMAKE_BINARY_DIR}/share/sluice/models
                  OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
else()
  message(STATUS "no Python: share/sluice/models is not made")
endif()
file(CREATE_LINK ${PROJECT_SOURCE_DIR}/bench/systems ${CMAKE_BINARY_DIR}/share/sluice/systems
     SYMBOLIC)
set(SLUICE_REPORT_FILES tools/report/report.py tools/report/page.py tools/report/page.html
                        bench/figures/table.py bench/figures/plot.py)
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/share/sluice/report)
foreach(_file IN LISTS SLUICE_REPORT_FILES)
  get_filename_component(_name ${_file} NAME)
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/${_file}
       ${CMAKE_BINARY_DIR}/share/sluice/report/${_name} SYMBOLIC)
endforeach()
file(CREATE_LINK ${PROJECT_SOURCE_DIR}/docs/recipes.json
     ${CMAKE_BINARY_DIR}/share/sluice/cases/recipes.json SYMBOLIC)
