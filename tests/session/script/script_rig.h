// A machine of a script on fakes: what all kinds of them share.
#ifndef SLUICE_TESTS_SESSION_SCRIPT_SCRIPT_RIG_H_
#define SLUICE_TESTS_SESSION_SCRIPT_SCRIPT_RIG_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "deadlock/script_words.h"
#include "fakes/log_device.h"
#include "fakes/log_source.h"
#include "fakes/log_transport.h"
#include "fakes/operations_log.h"
#include "sluice/layout.h"

namespace sluice::session_test {

class ScriptRig {
 public:
  ScriptRig() = default;
  ScriptRig(const ScriptRig&) = delete;
  ScriptRig& operator=(const ScriptRig&) = delete;
  virtual ~ScriptRig() = default;

  // Carries out one event, and what follows from it.
  void Obey(deadlock::ScriptWords& words);
  std::vector<std::string> TakeLines() { return log_.Take(); }

 protected:
  // An event of this kind of machine; false: there is none of this name.
  virtual bool ObeyOwn(deadlock::ScriptWords& words) = 0;
  // Goes on until nothing moves.
  virtual void Drive() = 0;
  virtual void Poison(const absl::Status& status) = 0;
  virtual void End() = 0;
  // These operations end well: names, or "all" that are open.
  void Done(absl::string_view names);

  OperationsLog log_;
  // The machine's; null where it has none, and after End.
  LogDevice* device_ = nullptr;
  LogTransport* transport_ = nullptr;
  LogSource* source_ = nullptr;

 private:
  bool EndOperation(absl::string_view name, const absl::Status& status);
  void Fail(const deadlock::ScriptWords& words);
  void Trouble(const deadlock::ScriptWords& words);
};

// "UNAVAILABLE: peer gone".
absl::Status StatusFrom(absl::string_view text);
std::string StatusText(const absl::Status& status);
// "4x16".
std::vector<int64_t> ShapeFrom(absl::string_view text);
// "0,1", or "0,1,2,3 as 2x2" with a slash for " as ".
Mesh MeshFrom(absl::string_view text);
// "0,1:S(0)"; "-" is what does nothing: one replica on the rank `otherwise`.
Layout LayoutFrom(absl::string_view text);
std::vector<int> RanksFrom(absl::string_view text);
// Lines of a text, each written to `log`.
void WriteLines(absl::string_view text, OperationsLog* log);

}  // namespace sluice::session_test

#endif  // SLUICE_TESTS_SESSION_SCRIPT_SCRIPT_RIG_H_
