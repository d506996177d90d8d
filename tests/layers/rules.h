// The rules that this repository's files keep: who includes whom, and the look of a file.
//
// Works on text alone, so that the rules themselves can be tested with bad input.
#ifndef SLUICE_TESTS_LAYERS_RULES_H_
#define SLUICE_TESTS_LAYERS_RULES_H_

#include <string>
#include <string_view>
#include <vector>

namespace sluice {

// What is wrong with the file at `path` (from the repository's root, with forward slashes), one
// "path:line: complaint" each. C++ files, CMake files and scripts; nothing for other kinds.
std::vector<std::string> Complaints(std::string_view path, std::string_view content);

// The include guard that a header at `path` must have.
std::string GuardOf(std::string_view path);

}  // namespace sluice

#endif  // SLUICE_TESTS_LAYERS_RULES_H_
