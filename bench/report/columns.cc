// Cells and lines.
#include "report/columns.h"

#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "tensor/quoted.h"
#include "workload/numbers.h"

namespace sluice::bench {
namespace {

std::string TimeName(double us) {
  if (us >= 1e6) return absl::StrFormat("%.2f s", us / 1e6);
  if (us >= 1e3) return absl::StrFormat("%.2f ms", us / 1e3);
  return absl::StrFormat("%.1f us", us);
}

std::string Cell(const Json& value, const Shown& shown) {
  if (shown.unit_of_cell == Unit::kBytes) return BytesName(value.get<int64_t>());
  if (shown.unit_of_cell == Unit::kMicroseconds) return TimeName(value.get<double>());
  if (value.is_string()) return Escaped(value.get<std::string>());
  const bool is_whole = !value.is_number_float() && shown.digits == 0;
  if (is_whole || !value.is_number()) return value.dump();
  return absl::StrFormat("%.*f", shown.digits, value.get<double>() * shown.scale);
}

// As RFC 4180 has it.
std::string CsvCell(const Json& value, const Shown& shown) {
  std::string text = value.is_null() ? "" : Cell(value, shown);
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

std::string CellsOf(const char* first, const std::vector<ColumnStyle>& styles,
                    const std::vector<std::string>& cells) {
  std::string line = first;
  for (size_t i = 0; i < styles.size(); ++i) {
    const Shown& table = styles[i].table;
    if (table.head == nullptr) continue;
    if (table.width > 0) {
      absl::StrAppendFormat(&line, "%s%*s", line.size() == 1 ? "" : " ", table.width, cells[i]);
    } else if (!cells[i].empty()) {
      absl::StrAppend(&line, "  ", cells[i]);
    }
  }
  absl::StripTrailingAsciiWhitespace(&line);
  return line + "\n";
}

}  // namespace

std::string ColumnTexts::TableHead() const {
  std::vector<std::string> heads, units;
  for (const ColumnStyle& style : styles_) {
    heads.emplace_back(style.table.head == nullptr ? "" : style.table.head);
    units.emplace_back(style.table.unit);
  }
  const bool has_units = !absl::StrJoin(units, "").empty();
  return CellsOf("#", styles_, heads) + (has_units ? CellsOf("#", styles_, units) : "");
}

std::string ColumnTexts::TableLine(const std::vector<Json>& values) const {
  std::vector<std::string> cells;
  const Shown* shown = nullptr;  // of the cell that a limit belongs to
  size_t cell = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    cells.emplace_back();
    const Shown& table = styles_[i].table;
    if (table.head != nullptr) {
      shown = &table;
      cell = i;
      cells[i] = values[i].is_null() ? table.none : Cell(values[i], table);
    } else if (table.is_limit && !values[cell].is_null()) {
      const bool is_none = values[i].is_null() || values[i] == 0;
      if (shown->unit_of_cell == Unit::kNone) {
        absl::StrAppend(&cells[cell], "/", is_none ? "-" : Cell(values[i], *shown));
      } else if (!is_none) {
        absl::StrAppend(&cells[cell], " of ", Cell(values[i], *shown));
      }
    }
  }
  return CellsOf(" ", styles_, cells);
}

std::string ColumnTexts::CsvHead() const {
  std::vector<std::string> heads;
  for (const ColumnStyle& style : styles_) {
    if (style.csv.head != nullptr) heads.emplace_back(style.csv.head);
  }
  return absl::StrJoin(heads, ",") + "\n";
}

std::string ColumnTexts::CsvLine(const std::vector<Json>& values) const {
  std::vector<std::string> cells;
  for (size_t i = 0; i < values.size(); ++i) {
    if (styles_[i].csv.head != nullptr) cells.push_back(CsvCell(values[i], styles_[i].csv));
  }
  return absl::StrJoin(cells, ",") + "\n";
}

Json ColumnTexts::Object(const std::vector<Json>& values) const {
  Json object = Json::object();
  for (size_t i = 0; i < values.size(); ++i) {
    if (!styles_[i].key.empty()) object[Json::json_pointer("/" + styles_[i].key)] = values[i];
  }
  return object;
}

}  // namespace sluice::bench
