// One row of Python values to codes, as engine/codes/domains.py has them, without coming back to Python.
//
// What is out of the ordinary (a value of another type, one that a column does not hold) is not explained here: the
// caller takes the batch path, which knows what to say. Only values of the very types of Python are looked at, so that
// no code of users runs in between, but for the attributes of a dataclass, which are taken first.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "bind.hpp"

namespace ivme {

// The number of a decimal's text without its point, which is `scale` digits from the right; none if it has an exponent,
// or more digits than fit. At most 18 digits are asked for.
std::optional<int64_t> decimal_word(std::string_view text, unsigned precision, unsigned scale);

class RowEncoder {
public:
    // For each column: its name, its kind, precision and scale of a decimal, whether NULL is left to the batch path, a
    // dictionary if it has one, and for a kind that only Python encodes the function that does.
    explicit RowEncoder(const nb::list& columns);

    size_t arity() const { return columns_.size(); }

    // The values of a row that is a tuple, a list, a dict or a dataclass, in the order of the columns; false if it is
    // something else, or has other columns. A value that is taken out of an attribute is owned by `owned`.
    bool values(nb::handle row, std::vector<PyObject*>& found, std::vector<nb::object>& owned);

    // False if the batch path has to look at a value.
    bool encode(const std::vector<PyObject*>& values, int64_t* words) const;

    // The rows of a list, column by column; false as before.
    bool encode_rows(nb::handle rows, Array<int64_t>& words);

private:
    enum class Kind : uint8_t { Int, Float, Decimal, String, Bool, Date, Timestamp, Binary, Other };

    struct Column {
        nb::object name;
        Kind kind;
        unsigned precision, scale;
        bool never_null;
        Dictionary* dictionary;
        nb::object encode;
    };

    bool encode_value(const Column& column, PyObject* value, int64_t* word) const;
    bool is_known(PyTypeObject* type);

    std::vector<Column> columns_;
    Calendar calendar_;
    nb::object decimal_;   // the class
    nb::object instance_;  // the last class of rows whose fields are the columns
    nb::object kept_;
};

}  // namespace ivme
