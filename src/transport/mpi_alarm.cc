// Alarms over MPI: one standing receive, and a message to every rank from who fails.
#include "transport/mpi_alarm.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "tensor/check.h"
#include "transport/mpi_error.h"

namespace sluice {

MpiAlarm::~MpiAlarm() {
  if (!MpiIsUsable()) return;
  bool active = !WithdrawReceive(&messages_->receive);
  for (MPI_Request& send : messages_->sends) {
    int complete = 0;
    if (MPI_Test(&send, &complete, MPI_STATUS_IGNORE) == MPI_SUCCESS && complete == 0) {
      active = true;
    }
  }
  // After a failure other ranks may still send here.
  if (active || raised_ || first_.has_value()) comm_->Abandon();
  if (active) static_cast<void>(messages_.release());
}

absl::Status MpiAlarm::Listen() {
  const int code = MPI_Irecv(&messages_->received, sizeof(Record), MPI_BYTE, MPI_ANY_SOURCE,
                             kMpiAlarmTag, comm_->get(), &messages_->receive);
  if (code == MPI_SUCCESS) return absl::OkStatus();
  messages_->receive = MPI_REQUEST_NULL;
  return MpiError(code, "MPI_Irecv", absl::StrCat("alarm from any rank to rank ", comm_->rank()));
}

void MpiAlarm::Raise(const absl::Status& status) {
  SLUICE_CHECK(!status.ok(), "an alarm needs an error");
  if (raised_) return;
  raised_ = true;
  Record& record = messages_->sent;
  const size_t bytes = std::min(status.message().size(), Fabric::kMaxAlarmBytes);
  record.code = static_cast<int>(status.code());
  record.message_bytes = static_cast<int>(bytes);
  std::memcpy(record.message.data(), status.message().data(), bytes);
  for (int dst = 0; dst < comm_->size(); ++dst) {
    if (dst == comm_->rank()) continue;
    messages_->sends.push_back(MPI_REQUEST_NULL);
    const int code = MPI_Isend(&record, sizeof(Record), MPI_BYTE, dst, kMpiAlarmTag, comm_->get(),
                               &messages_->sends.back());
    if (code != MPI_SUCCESS) messages_->sends.pop_back();
  }
}

std::optional<Alarm> MpiAlarm::Poll() {
  if (messages_->receive == MPI_REQUEST_NULL) return first_;
  int complete = 0;
  MPI_Status outcome;
  if (MPI_Test(&messages_->receive, &complete, &outcome) != MPI_SUCCESS) {
    messages_->receive = MPI_REQUEST_NULL;
    return first_;
  }
  if (complete == 0) return first_;
  Keep(outcome);
  // Goes on listening, so that the sends of later alarms can end. If that fails there is nothing
  // left to hear anyway: the first alarm counts.
  static_cast<void>(Listen());
  return first_;
}

void MpiAlarm::Keep(const MPI_Status& outcome) {
  if (first_.has_value()) return;
  const Record& record = messages_->received;
  first_.emplace();
  first_->src = outcome.MPI_SOURCE;
  first_->code = static_cast<absl::StatusCode>(record.code);
  first_->message.assign(record.message.data(), static_cast<size_t>(record.message_bytes));
}

}  // namespace sluice
