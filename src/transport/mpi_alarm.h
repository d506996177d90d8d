// Tells all ranks that one of them has failed, outside the order of everything else.
#ifndef SLUICE_SRC_TRANSPORT_MPI_ALARM_H_
#define SLUICE_SRC_TRANSPORT_MPI_ALARM_H_

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "sluice/fabric.h"
#include "transport/mpi_communicator.h"

namespace sluice {

// One standing receive from any rank; one send to each rank when this one fails. Thread: one.
class MpiAlarm {
 public:
  explicit MpiAlarm(std::shared_ptr<MpiCommunicator> comm) : comm_(std::move(comm)) {}
  // Never waits: what is still under way keeps its memory, and the communicator, for ever.
  ~MpiAlarm();
  MpiAlarm(const MpiAlarm&) = delete;
  MpiAlarm& operator=(const MpiAlarm&) = delete;

  // Begins to listen; called once.
  absl::Status Listen();

  // As in Fabric. Ranks that a send to fails for are passed over: they hear of it from the others'
  // alarms or by silence.
  void Raise(const absl::Status& status);
  std::optional<Alarm> Poll();

 private:
  // An alarm on the wire. All ranks are one program's, so it travels as it lies in memory.
  struct Record {
    int code;
    int message_bytes;
    std::array<char, Fabric::kMaxAlarmBytes> message;
  };
  // What MPI reads and writes.
  struct Messages {
    Record received;
    MPI_Request receive = MPI_REQUEST_NULL;
    Record sent;
    std::vector<MPI_Request> sends;
  };

  void Keep(const MPI_Status& outcome);

  const std::shared_ptr<MpiCommunicator> comm_;
  std::unique_ptr<Messages> messages_ = std::make_unique<Messages>();
  std::optional<Alarm> first_;
  bool raised_ = false;
};

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_MPI_ALARM_H_
