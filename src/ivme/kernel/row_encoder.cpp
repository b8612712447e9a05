#include "row_encoder.hpp"

#include <mutex>

#include "expression_dates.hpp"
#include "expression_value.hpp"

namespace ivme {

namespace {

constexpr unsigned MOST_NARROW_DIGITS = 18;

bool encode_string(Dictionary& dictionary, std::string_view text, int64_t* word) {
    std::unique_lock<std::shared_mutex> held(dictionary.mutex, std::try_to_lock);
    if (!held.owns_lock()) {
        nb::gil_scoped_release release;
        held.lock();
    }
    *word = dictionary.encode(text);
    return true;
}

bool encode_text(Dictionary& dictionary, PyObject* value, int64_t* word) {
    if (!PyUnicode_CheckExact(value)) return false;
    Py_ssize_t size;
    const char* text = PyUnicode_AsUTF8AndSize(value, &size);
    if (!text) {  // a lone surrogate
        PyErr_Clear();
        return false;
    }
    return encode_string(dictionary, {text, static_cast<size_t>(size)}, word);
}

bool encode_int(PyObject* value, int64_t* word) {
    if (!PyLong_CheckExact(value)) return false;
    int overflow;
    *word = PyLong_AsLongLongAndOverflow(value, &overflow);
    return !overflow && *word != NULL_CODE;
}

bool encode_decimal(PyObject* value, unsigned precision, unsigned scale, const nb::object& decimal, int64_t* word) {
    if (encode_int(value, word)) {
        auto limit = static_cast<int64_t>(power_of_ten(precision - scale));
        bool fits = *word < limit && *word > -limit;
        if (fits) *word *= static_cast<int64_t>(power_of_ten(scale));
        return fits;
    }
    if (reinterpret_cast<PyObject*>(Py_TYPE(value)) != decimal.ptr()) return false;
    nb::object text = nb::steal(PyObject_Str(value));
    if (!text.is_valid()) throw nb::python_error();
    Py_ssize_t size;
    const char* digits = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
    if (!digits) throw nb::python_error();
    std::optional<int64_t> number = decimal_word({digits, static_cast<size_t>(size)}, precision, scale);
    if (number) *word = *number;
    return number.has_value();
}

int64_t day_of(PyObject* date) {
    return days_of_civil({Calendar::year(date), Calendar::month(date), Calendar::day(date)});
}

bool encode_timestamp(const Calendar& calendar, PyObject* value, int64_t* word) {
    if (!calendar.is_datetime(value) || calendar.has_zone(value) || Calendar::fold(value)) return false;
    int64_t seconds =
        day_of(value) * 86'400 + Calendar::hour(value) * 3'600 + Calendar::minute(value) * 60 + Calendar::second(value);
    *word = seconds * 1'000'000 + Calendar::microsecond(value);
    return true;
}

bool encode_float(PyObject* value, int64_t* word) {
    constexpr int64_t exact = int64_t{1} << 53;
    if (encode_int(value, word)) {
        bool fits = *word <= exact && *word >= -exact;
        if (fits) *word = code_of_real(static_cast<double>(*word));
        return fits;
    }
    if (!PyFloat_CheckExact(value) || is_null(PyFloat_AS_DOUBLE(value))) return false;
    *word = code_of_real(PyFloat_AS_DOUBLE(value));
    return true;
}

}  // namespace

std::optional<int64_t> decimal_word(std::string_view text, unsigned precision, unsigned scale) {
    bool negative = text.starts_with('-');
    size_t at = negative, end = text.size();
    int64_t number = 0;
    unsigned whole = 0;
    auto is_digit = [&] { return at < end && text[at] >= '0' && text[at] <= '9'; };
    for (; is_digit(); ++at) {
        whole += number || text[at] != '0';
        if (whole > precision - scale) return {};
        number = number * 10 + (text[at] - '0');
    }
    unsigned behind = 0;
    if (at < end && text[at] == '.') {
        for (++at; is_digit(); ++at) {
            if (behind == scale) {
                if (text[at] != '0') return {};
                continue;
            }
            number = number * 10 + (text[at] - '0');
            ++behind;
        }
    }
    if (at != end || at == negative) return {};
    for (; behind < scale; ++behind) number *= 10;
    return negative ? -number : number;
}

RowEncoder::RowEncoder(const nb::list& columns) : kept_(columns) {
    decimal_ = nb::module_::import_("decimal").attr("Decimal");
    constexpr const char* names[] = {"int", "float", "decimal", "string", "bool", "date", "timestamp", "binary"};
    for (nb::handle each : columns) {
        auto [name, kind, precision, scale, never_null, dictionary, encode] =
            nb::cast<std::tuple<nb::object, std::string, unsigned, unsigned, bool, nb::object, nb::object>>(each);
        Column column{name, Kind::Other, precision, scale, never_null, nullptr, encode};
        for (unsigned i = 0; i < std::size(names) && encode.is_none(); ++i) {
            if (kind == names[i]) column.kind = static_cast<Kind>(i);
        }
        if (!dictionary.is_none()) column.dictionary = dictionary_of(dictionary);
        bool is_text = column.kind == Kind::String || column.kind == Kind::Binary;
        if (is_text && !column.dictionary) throw std::invalid_argument("a column of strings has a dictionary");
        if (column.kind == Kind::Other && encode.is_none()) throw std::invalid_argument("who encodes the column?");
        if (column.kind == Kind::Decimal && (precision > MOST_NARROW_DIGITS || scale > precision)) {
            throw std::invalid_argument("a decimal of so many digits is not its own code");
        }
        columns_.push_back(std::move(column));
    }
}

bool RowEncoder::values(nb::handle row, std::vector<PyObject*>& found, std::vector<nb::object>& owned) {
    PyObject* given = row.ptr();
    size_t n = columns_.size();
    found.clear();
    found.reserve(n);
    if (PyTuple_CheckExact(given) || PyList_CheckExact(given)) {
        borrow_items(given, found);
        return found.size() == n;
    }
    if (PyDict_CheckExact(given)) {
        if (static_cast<size_t>(PyDict_GET_SIZE(given)) != n) return false;
        for (const Column& column : columns_) {
            PyObject* value = PyDict_GetItemWithError(given, column.name.ptr());
            if (!value) {
                if (PyErr_Occurred()) throw nb::python_error();
                return false;
            }
            found.push_back(value);
        }
        return true;
    }
    if (!is_known(Py_TYPE(given))) return false;
    for (const Column& column : columns_) {
        PyObject* value = PyObject_GetAttr(given, column.name.ptr());
        if (!value) {
            PyErr_Clear();
            return false;
        }
        owned.push_back(nb::steal(value));
        found.push_back(value);
    }
    return true;
}

// Whether reading an attribute of a class's instances runs no code of users: there is a slot for it, or only a default.
static bool is_plain_attribute(PyTypeObject* type, PyObject* name) {
    nb::object found = nb::steal(PyObject_GetAttr(reinterpret_cast<PyObject*>(type), name));
    if (!found.is_valid()) {
        PyErr_Clear();
        return true;
    }
    return Py_TYPE(found.ptr()) == &PyMemberDescr_Type || !has_getter(Py_TYPE(found.ptr()));
}

// Whether the fields of a class are the columns; the last that was is remembered.
bool RowEncoder::is_known(PyTypeObject* type) {
    nb::handle row_class(reinterpret_cast<PyObject*>(type));
    if (row_class.is(instance_)) return true;
    if (!has_plain_attributes(type) || !nb::hasattr(row_class, "__dataclass_fields__")) return false;
    nb::object fields = row_class.attr("__dataclass_fields__");
    if (!PyDict_CheckExact(fields.ptr()) || nb::len(fields) != columns_.size()) return false;
    for (const Column& column : columns_) {
        if (PyDict_Contains(fields.ptr(), column.name.ptr()) != 1) return false;
        if (!is_plain_attribute(type, column.name.ptr())) return false;
    }
    instance_ = nb::borrow(row_class);
    return true;
}

bool RowEncoder::encode(const std::vector<PyObject*>& values, int64_t* words) const {
    for (size_t i = 0; i < columns_.size(); ++i) {
        const Column& column = columns_[i];
        if (values[i] == Py_None) {
            if (column.never_null) return false;
            words[i] = NULL_CODE;
        } else if (!encode_value(column, values[i], &words[i])) {
            return false;
        }
    }
    return true;
}

bool RowEncoder::encode_rows(nb::handle rows, Array<int64_t>& words) {
    std::vector<PyObject*> found;
    std::vector<nb::object> owned;
    std::vector<int64_t> row(columns_.size());
    auto n = static_cast<size_t>(PyList_GET_SIZE(rows.ptr()));
    words.resize(columns_.size() * n);
    for (size_t i = 0; i < n; ++i) {
        if (static_cast<size_t>(PyList_GET_SIZE(rows.ptr())) != n) return false;  // what encodes was not ours alone
        nb::object given = nb::borrow(PyList_GET_ITEM(rows.ptr(), static_cast<Py_ssize_t>(i)));
        owned.clear();
        if (!values(given, found, owned) || !encode(found, row.data())) return false;
        for (size_t column = 0; column < row.size(); ++column) words[column * n + i] = row[column];
    }
    return true;
}

bool RowEncoder::encode_value(const Column& column, PyObject* value, int64_t* word) const {
    switch (column.kind) {
        case Kind::Int:
            return encode_int(value, word);
        case Kind::Float:
            return encode_float(value, word);
        case Kind::Decimal:
            return encode_decimal(value, column.precision, column.scale, decimal_, word);
        case Kind::String:
            return encode_text(*column.dictionary, value, word);
        case Kind::Bool:
            *word = value == Py_True;
            return PyBool_Check(value);
        case Kind::Date:
            *word = calendar_.is_date(value) ? day_of(value) : 0;
            return calendar_.is_date(value);
        case Kind::Timestamp:
            return encode_timestamp(calendar_, value, word);
        case Kind::Binary:
            if (!PyBytes_CheckExact(value)) return false;
            return encode_string(*column.dictionary,
                                 {PyBytes_AS_STRING(value), static_cast<size_t>(PyBytes_GET_SIZE(value))}, word);
        case Kind::Other:
            break;
    }
    nb::object code = column.encode(nb::handle(value));
    return !code.is_none() && encode_int(code.ptr(), word);
}

}  // namespace ivme
