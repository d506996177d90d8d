// Writes a played job as an engine script (engine_script.h), for people and to be replayed.
#ifndef SLUICE_TESTS_DEADLOCK_SCRIPT_WRITER_H_
#define SLUICE_TESTS_DEADLOCK_SCRIPT_WRITER_H_

#include <string>

#include "deadlock/job.h"
#include "deadlock/rules.h"
#include "deadlock/world.h"

namespace sluice::deadlock {

// An engine per rank, what it was told in the order of the trace, and its answers; at the end who
// waits for what. Where all that matters happens at engines, the script then settles them. What
// happens beside them (Premise: all but the order of starts) is only told in comments.
std::string ScriptOf(const Job& job, const Rules& rules, const Outcome& outcome);

}  // namespace sluice::deadlock

#endif  // SLUICE_TESTS_DEADLOCK_SCRIPT_WRITER_H_
