// Rows of codes as JSON has them in the log: the form that ivme/store/plain.py gives values, in ASCII.
#pragma once

#include <string>
#include <vector>

#include "bind.hpp"

namespace ivme {

class RowJson {
public:
    // Columns as RowEncoder takes them.
    explicit RowJson(const nb::list& columns);

    // Whether all columns are of kinds that are written here.
    bool takes_all() const { return takes_all_; }

    // A list of rows, whose columns lie one behind the other. Strings are looked up under the lock of their dictionary.
    void write_rows(const int64_t* columns, size_t n, std::string& text) const;

private:
    enum class Kind : uint8_t { Int, Float, Decimal, String, Bool, Date, Timestamp, Binary };

    struct Column {
        Kind kind;
        unsigned scale;
        Dictionary* dictionary;
    };

    static void write_value(const Column& column, int64_t code, std::string& text);

    std::vector<Column> columns_;
    bool takes_all_ = true;
    nb::object kept_;
};

}  // namespace ivme
