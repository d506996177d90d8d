// Frames: what is encoded is parsed, and nothing else.
#include "world/store/store_wire.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

using testing::HasSubstr;

constexpr size_t kLengthBytes = 4;

std::string Body(const std::string& frame) { return frame.substr(kLengthBytes); }

StoreRequest SomeRequest() {
  StoreRequest request;
  request.id = 0x01020304;
  request.call = StoreCall::kCompareSet;
  request.number = -5;
  request.version = ~uint64_t{0};
  request.key = absl::string_view("k\0y", 3);
  request.value = "desired";
  request.expected = "";
  return request;
}

TEST(StoreWireTest, RequestsComeThrough) {
  const std::string frame = EncodeRequest(SomeRequest());
  const std::string body = Body(frame);
  const auto request = ParseRequest(body).value();
  EXPECT_EQ(request.id, 0x01020304u);
  EXPECT_EQ(request.call, StoreCall::kCompareSet);
  EXPECT_EQ(request.number, -5);
  EXPECT_EQ(request.version, ~uint64_t{0});
  EXPECT_EQ(request.key, absl::string_view("k\0y", 3));
  EXPECT_EQ(request.value, "desired");
  EXPECT_EQ(request.expected, "");
}

TEST(StoreWireTest, NumbersHaveTheLowestByteFirst) {
  const std::string frame = EncodeRequest(SomeRequest());
  EXPECT_EQ(static_cast<size_t>(static_cast<unsigned char>(frame[0])), frame.size() - kLengthBytes);
  EXPECT_EQ(frame.substr(1, 3), std::string(3, '\0'));
  EXPECT_EQ(frame.substr(5, 4), "\x04\x03\x02\x01");
}

TEST(StoreWireTest, RepliesComeThrough) {
  StoreReply reply;
  reply.id = 7;
  reply.number = -1;
  reply.version = 9;
  reply.value = std::string("\0v", 2);
  reply.entries = {{"a", ""}, {std::string("\0", 1), "2"}};
  const auto back = ParseReply(Body(EncodeReply(reply))).value();
  EXPECT_TRUE(back.status.ok());
  EXPECT_EQ(back.id, 7u);
  EXPECT_EQ(back.number, -1);
  EXPECT_EQ(back.version, 9u);
  EXPECT_EQ(back.value, reply.value);
  EXPECT_EQ(back.entries, reply.entries);
}

TEST(StoreWireTest, ErrorsComeThroughShortAndPrintable) {
  StoreReply reply;
  reply.status = absl::NotFoundError("\x1b[31m" + std::string(5000, 'x'));
  const auto back = ParseReply(Body(EncodeReply(reply))).value();
  EXPECT_TRUE(absl::IsNotFound(back.status));
  EXPECT_THAT(std::string(back.status.message()), testing::StartsWith("?[31mxxx"));
  EXPECT_LT(back.status.message().size(), 2000u);
  const absl::Status error = ParseError(Body(EncodeError(absl::AbortedError("a\nb"))));
  EXPECT_EQ(error, absl::AbortedError("a?b"));
  EXPECT_FALSE(ParseError("").ok());
  EXPECT_FALSE(ParseError(Body(EncodeError(absl::OkStatus()))).ok());
}

TEST(StoreWireTest, EveryShorterOrLongerFrameIsRefused) {
  StoreReply some;
  some.entries = {{"a", "b"}};
  const std::string request = Body(EncodeRequest(SomeRequest()));
  const std::string reply = Body(EncodeReply(some));
  for (size_t length = 0; length < request.size(); ++length) {
    EXPECT_FALSE(ParseRequest(request.substr(0, length)).ok()) << length;
  }
  for (size_t length = 0; length < reply.size(); ++length) {
    EXPECT_FALSE(ParseReply(reply.substr(0, length)).ok()) << length;
  }
  EXPECT_FALSE(ParseRequest(request + "x").ok());
  EXPECT_FALSE(ParseReply(reply + "x").ok());
  EXPECT_FALSE(ParseRequest(reply).ok());
  EXPECT_FALSE(ParseReply(request).ok());
  std::string unknown = request;
  unknown[5] = 99;  // the call
  EXPECT_FALSE(ParseRequest(unknown).ok());
}

TEST(StoreInboxTest, TakesFramesApartWhereverTheyAreCut) {
  std::string stream;
  for (const std::string text : {"one", "", "three"}) {
    stream += EncodeFrame(StoreFrame::kProof, text);
  }
  for (size_t step = 1; step <= stream.size(); ++step) {
    StoreInbox inbox(100);
    std::string frames;
    for (size_t at = 0; at < stream.size(); at += step) {
      inbox.Append(absl::string_view(stream).substr(at, step));
      while (true) {
        const auto frame = inbox.Next();
        ASSERT_TRUE(frame.ok()) << frame.status();
        if (frame->empty()) break;
        EXPECT_EQ((*frame)[0], static_cast<char>(StoreFrame::kProof));
        frames += std::string(frame->substr(1)) + ";";
      }
    }
    EXPECT_EQ(frames, "one;;three;");
  }
}

TEST(StoreInboxTest, RefusesALongFrameBeforeItHasCome) {
  StoreInbox inbox(10);
  inbox.Append(EncodeFrame(StoreFrame::kProof, "123456789"));
  EXPECT_EQ(inbox.Next()->size(), 10u);
  inbox.Append(EncodeFrame(StoreFrame::kProof, "1234567890").substr(0, kLengthBytes));
  EXPECT_THAT(std::string(inbox.Next().status().message()), HasSubstr("one of 11 bytes"));
  StoreInbox empty(10);
  empty.Append(std::string(kLengthBytes, '\0'));
  EXPECT_FALSE(empty.Next().ok());
}

TEST(StoreInboxTest, TakesManyFramesInOneBuffer) {
  StoreInbox inbox(1000);
  const std::string frame = EncodeFrame(StoreFrame::kProof, std::string(999, 'x'));
  int taken = 0;
  for (int i = 0; i < 2000; ++i) {
    inbox.Append(frame);
    if (i % 3 != 0) continue;
    for (; !inbox.Next()->empty(); ++taken) {
    }
  }
  for (; !inbox.Next()->empty(); ++taken) {
  }
  EXPECT_EQ(taken, 2000);
}

}  // namespace
}  // namespace sluice
