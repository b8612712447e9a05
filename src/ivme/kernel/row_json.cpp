#include "row_json.hpp"

#include <charconv>
#include <cmath>
#include <mutex>
#include <shared_mutex>

#include "expression_dates.hpp"
#include "expression_value.hpp"

namespace ivme {

namespace {

constexpr char HEX[] = "0123456789abcdef";

void write_int(int64_t number, std::string& text) {
    char digits[24];
    text.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

// A number of at least so many digits.
void write_padded(int64_t number, size_t width, std::string& text) {
    char digits[24];
    auto size = static_cast<size_t>(std::to_chars(digits, digits + sizeof digits, number).ptr - digits);
    if (size < width) text.append(width - size, '0');
    text.append(digits, size);
}

void write_float(double number, std::string& text) {
    if (std::isinf(number)) {
        text += number < 0 ? "-Infinity" : "Infinity";
        return;
    }
    char digits[40];
    std::string_view written(digits,
                             static_cast<size_t>(std::to_chars(digits, digits + sizeof digits, number).ptr - digits));
    text += written;
    if (written.find_first_of(".e") == std::string_view::npos) text += ".0";  // or it is read as an integer
}

// The digits of a decimal in a string: JSON's numbers would be read as floats.
void write_decimal(int64_t code, unsigned scale, std::string& text) {
    text += code < 0 ? "\"-" : "\"";
    char digits[24];
    auto size =
        static_cast<size_t>(std::to_chars(digits, digits + sizeof digits,
                                          code < 0 ? 0 - static_cast<uint64_t>(code) : static_cast<uint64_t>(code))
                                .ptr -
                            digits);
    size_t whole = size > scale ? size - scale : 0;
    if (!whole) text += '0';
    text.append(digits, whole);
    if (scale) {
        text += '.';
        text.append(scale - (size - whole), '0');
        text.append(digits + whole, size - whole);
    }
    text += '"';
}

void write_date(int64_t days, std::string& text) {
    Civil date = civil_of_days(days);
    write_padded(date.year, 4, text);
    text += '-';
    write_padded(date.month, 2, text);
    text += '-';
    write_padded(date.day, 2, text);
}

void write_timestamp(int64_t code, std::string& text) {
    int64_t days = floored_quotient(code, DAY_MICROSECONDS), rest = code - days * DAY_MICROSECONDS;
    int64_t seconds = rest / 1'000'000, micros = rest % 1'000'000;
    write_date(days, text);
    text += 'T';
    write_padded(seconds / 3'600, 2, text);
    text += ':';
    write_padded(seconds / 60 % 60, 2, text);
    text += ':';
    write_padded(seconds % 60, 2, text);
    if (!micros) return;
    text += '.';
    write_padded(micros, 6, text);
}

void write_unit(uint32_t unit, std::string& text) {
    text += "\\u";
    for (int shift = 12; shift >= 0; shift -= 4) text += HEX[unit >> shift & 15];
}

// The code point that begins at `at`, which moves behind it; the text is valid UTF-8.
uint32_t code_point(std::string_view text, size_t& at) {
    auto byte = [&] { return static_cast<uint32_t>(static_cast<unsigned char>(text[at++])); };
    uint32_t first = byte();
    size_t more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : 1;
    uint32_t point = first & (0x3Fu >> more);
    for (; more && at < text.size(); --more) point = point << 6 | (byte() & 0x3F);
    return point;
}

void write_string(std::string_view string, std::string& text) {
    text += '"';
    for (size_t at = 0; at < string.size();) {
        auto byte = static_cast<unsigned char>(string[at]);
        if (byte >= 0x80) {
            uint32_t point = code_point(string, at);
            if (point >= 0x10000) {
                write_unit(0xD800 + (point - 0x10000) / 0x400, text);
                point = 0xDC00 + (point - 0x10000) % 0x400;
            }
            write_unit(point, text);
            continue;
        }
        ++at;
        if (byte < 0x20 || byte == 0x7F) {
            write_unit(byte, text);
            continue;
        }
        if (byte == '"' || byte == '\\') text += '\\';
        text += static_cast<char>(byte);
    }
    text += '"';
}

void write_bytes(std::string_view bytes, std::string& text) {
    text += '"';
    for (char each : bytes) {
        text += HEX[static_cast<unsigned char>(each) >> 4];
        text += HEX[static_cast<unsigned char>(each) & 15];
    }
    text += '"';
}

// Strings may come in another thread, which has the lock and may want the GIL.
std::shared_lock<std::shared_mutex> read_lock(const Dictionary& dictionary) {
    std::shared_lock<std::shared_mutex> held(dictionary.mutex, std::try_to_lock);
    if (!held.owns_lock()) {
        nb::gil_scoped_release release;
        held.lock();
    }
    return held;
}

}  // namespace

RowJson::RowJson(const nb::list& columns) : kept_(columns) {
    constexpr const char* names[] = {"int", "float", "decimal", "string", "bool", "date", "timestamp", "binary"};
    for (nb::handle each : columns) {
        auto [name, kind, precision, scale, never_null, dictionary, encode] =
            nb::cast<std::tuple<nb::object, std::string, unsigned, unsigned, bool, nb::object, nb::object>>(each);
        const auto* found = std::find(std::begin(names), std::end(names), kind);
        takes_all_ &= found != std::end(names) && encode.is_none();
        if (!takes_all_) return;
        columns_.push_back({static_cast<Kind>(found - std::begin(names)), scale,
                            dictionary.is_none() ? nullptr : dictionary_of(dictionary)});
    }
}

void RowJson::write_rows(const int64_t* columns, size_t n, std::string& text) const {
    text += '[';
    for (size_t row = 0; row < n; ++row) {
        text += row ? ",[" : "[";
        for (size_t column = 0; column < columns_.size(); ++column) {
            if (column) text += ',';
            write_value(columns_[column], columns[column * n + row], text);
        }
        text += ']';
    }
    text += ']';
}

void RowJson::write_value(const Column& column, int64_t code, std::string& text) {
    if (code == NULL_CODE) {
        text += "null";
        return;
    }
    switch (column.kind) {
        case Kind::Int:
            return write_int(code, text);
        case Kind::Float:
            return write_float(real_of_code(code), text);
        case Kind::Decimal:
            return write_decimal(code, column.scale, text);
        case Kind::Bool:
            text += code ? "true" : "false";
            return;
        case Kind::Date:
            text += '"';
            write_date(code, text);
            text += '"';
            return;
        case Kind::Timestamp:
            text += '"';
            write_timestamp(code, text);
            text += '"';
            return;
        case Kind::String:
        case Kind::Binary:
            break;
    }
    auto held = read_lock(*column.dictionary);
    std::string_view stored = column.dictionary->text(code);
    column.kind == Kind::String ? write_string(stored, text) : write_bytes(stored, text);
}

}  // namespace ivme
