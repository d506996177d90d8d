// Endpoints of UCX in peer-failure mode, and active messages over them.
#include "transport/ucx/ucx_peer.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tensor/error_text.h"

namespace sluice {

void UcxPeer::Connect() {
  if (endpoint_ != nullptr || !failure_.ok()) return;
  ucp_ep_params_t params = {};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(address_.ucx.data());
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler.cb = OnError;
  params.err_handler.arg = this;
  const ucs_status_t status = shared_->library.ucp_ep_create(shared_->worker, &params, &endpoint_);
  if (status != UCS_OK) {
    endpoint_ = nullptr;
    return Break(shared_->library.Error(status, "no connection"));
  }
  Tell({});
}

void UcxPeer::OnError(void* peer, ucp_ep_h /*endpoint*/, ucs_status_t status) {
  auto* const self = static_cast<UcxPeer*>(peer);
  self->Break(self->shared_->library.Error(status, "the connection has broken"));
}

void UcxPeer::Break(const absl::Status& why) {
  if (!failure_.ok()) return;
  failure_ = MakeError(absl::StatusCode::kUnavailable, RankInWords(rank_), " is not reached by ",
                       RankInWords(shared_->own_rank), " over UCX: ", why);
  waiting_.clear();
  next_ = 0;
  shared_->broken.push_back(this);
  BecomeBusy();
}

void UcxPeer::Close() {
  if (endpoint_ == nullptr) return;
  ucp_request_param_t params = {};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  params.flags = UCP_EP_CLOSE_FLAG_FORCE;
  const ucs_status_ptr_t request = shared_->library.ucp_ep_close_nbx(endpoint_, &params);
  endpoint_ = nullptr;
  if (UCS_PTR_IS_PTR(request)) closing_ = request;
  BecomeBusy();
}

void UcxPeer::BecomeBusy() {
  if (busy_) return;
  busy_ = true;
  shared_->busy.push_back(this);
}

void UcxPeer::Tell(const UcxRecord& record) {
  if (!failure_.ok()) return;
  waiting_.push_back(record);
  BecomeBusy();
  Connect();
}

bool UcxPeer::HasEnded(ucs_status_ptr_t* request) {
  if (*request == nullptr) return true;
  const ucs_status_t status = shared_->library.ucp_request_check_status(*request);
  if (status == UCS_INPROGRESS) return false;
  shared_->library.ucp_request_free(*request);
  *request = nullptr;
  if (status != UCS_OK) Break(shared_->library.Error(status, "a record has not left"));
  return true;
}

void UcxPeer::SendBatches() {
  while (HasEnded(&sending_) && failure_.ok() && next_ < waiting_.size()) {
    const size_t count = std::min(kUcxBatchRecords, waiting_.size() - next_);
    batch_.head.token = address_.token;
    batch_.head.sequence = sent_++;
    batch_.head.src = static_cast<uint32_t>(shared_->own_rank);
    batch_.head.count = static_cast<uint32_t>(count);
    std::copy_n(waiting_.begin() + static_cast<std::ptrdiff_t>(next_), count, batch_.records);
    next_ += count;
    if (next_ == waiting_.size()) {
      waiting_.clear();
      next_ = 0;
    }
    ucp_request_param_t params = {};
    params.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
    params.flags = UCP_AM_SEND_FLAG_EAGER;
    params.memory_type = UCS_MEMORY_TYPE_HOST;
    const ucs_status_ptr_t answer =
        shared_->library.ucp_am_send_nbx(endpoint_, kUcxActiveMessage, nullptr, 0, &batch_,
                                         sizeof(batch_.head) + count * sizeof(UcxRecord), &params);
    if (UCS_PTR_IS_ERR(answer)) {
      return Break(shared_->library.Error(UCS_PTR_STATUS(answer), "a record has not left"));
    }
    sending_ = answer;
  }
}

bool UcxPeer::Attend() {
  SendBatches();
  const bool closed = HasEnded(&closing_);
  busy_ = !closed || sending_ != nullptr || next_ < waiting_.size();
  return busy_;
}

bool UcxPeer::TakeSequence(uint32_t sequence) {
  if (sequence == taken_) {
    ++taken_;
    return true;
  }
  Break(absl::InternalError(
      absl::StrCat("records have come in another order: ", sequence, " instead of ", taken_)));
  return false;
}

}  // namespace sluice
