// Columns of results. A command's table, CSV and JSON follow from one list of them.
#ifndef SLUICE_BENCH_REPORT_COLUMNS_H_
#define SLUICE_BENCH_REPORT_COLUMNS_H_

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sluice::bench {

using Json = nlohmann::ordered_json;

enum class Unit : uint8_t {
  kNone,
  kBytes,         // "12 KiB"; a limit as "12 KiB of 136 MiB", and nothing where there is none
  kMicroseconds,  // "45.3 us", "1.31 s"
};

// How a table or CSV shows a column; without a head it does not.
struct Shown {
  const char* head = nullptr;
  const char* unit = "";   // of a table
  int width = 0;           // of a table; the last column has none
  int digits = 0;          // behind the point
  double scale = 1;        // what is shown for 1
  const char* none = "-";  // what a table shows for null; CSV shows nothing
  bool is_limit = false;
  Unit unit_of_cell = Unit::kNone;  // of a table: each cell has its unit
};
// In a table, what stands behind the cell before it: "PEAK/LIMIT". 0 is no limit.
inline constexpr Shown kLimit = {.is_limit = true};

constexpr Shown Csv(const char* head, int digits = 0, double scale = 1) {
  return {.head = head, .digits = digits, .scale = scale};
}

struct ColumnStyle {
  std::string key;  // of JSON, with '/' between the objects that it is in; empty: not in JSON
  Shown table;
  Shown csv;
};

// What the columns of any row have in common. `values`: one for each column.
class ColumnTexts {
 public:
  std::string TableHead() const;  // names, and units if there are any
  std::string CsvHead() const;

 protected:
  std::string TableLine(const std::vector<Json>& values) const;
  std::string CsvLine(const std::vector<Json>& values) const;
  Json Object(const std::vector<Json>& values) const;

  std::vector<ColumnStyle> styles_;
};

template <typename Row>
struct Column {
  // `get`: a member of Row, or what gives a value of one; an empty optional is null.
  template <typename Get>
  Column(const char* key, Get get, Shown table = {}, Shown csv = {})
      : style{key, table, csv},
        value([get = std::move(get)](const Row& row) { return JsonOf(std::invoke(get, row)); }) {}

  template <typename T>
  static Json JsonOf(T value) {
    return Json(std::move(value));
  }
  template <typename T>
  static Json JsonOf(const std::optional<T>& value) {
    return value ? Json(*value) : Json();
  }

  ColumnStyle style;
  std::function<Json(const Row&)> value;
};

template <typename Row>
class Columns : public ColumnTexts {
 public:
  Columns(std::initializer_list<Column<Row>> columns)
      : Columns(std::vector<Column<Row>>(columns)) {}
  explicit Columns(std::vector<Column<Row>> columns) : columns_(std::move(columns)) {
    for (const Column<Row>& column : columns_) styles_.push_back(column.style);
  }

  std::string TableRow(const Row& row) const { return TableLine(ValuesOf(row)); }
  std::string CsvRow(const Row& row) const { return CsvLine(ValuesOf(row)); }
  Json ToJson(const Row& row) const { return Object(ValuesOf(row)); }

 private:
  std::vector<Json> ValuesOf(const Row& row) const {
    std::vector<Json> values;
    values.reserve(columns_.size());
    for (const Column<Row>& column : columns_) values.push_back(column.value(row));
    return values;
  }

  std::vector<Column<Row>> columns_;
};

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_REPORT_COLUMNS_H_
