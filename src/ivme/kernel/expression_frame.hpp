// One chunk of an expression's rows: where the registers are, and the loops that instructions run over them.
//
// A loop takes the number of rows into a variable of its own and has no branches where an operation cannot fail, so
// that a processor takes several rows at a time.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "expression.hpp"
#include "expression_dates.hpp"

namespace ivme {

// Where each register's values are, and which rows of the chunk are doubtful.
struct ExpressionFrame {
    size_t start = 0, n = 0;
    std::vector<void*> lanes;
    uint8_t doubtful[EXPRESSION_CHUNK];

    template <class T>
    T* at(unsigned number) const {
        return static_cast<T*>(lanes[number]);
    }

    // An operation of two values that gives one, whatever they are.
    template <class A, class To, class F>
    void map(const Instruction& i, F f) {
        const A *a = at<A>(i.a), *b = at<A>(i.b);
        To* to = at<To>(i.to);
        for (size_t row = 0, end = n; row < end; ++row) {
            bool null = is_null(a[row]) | is_null(b[row]);
            To value = static_cast<To>(f(a[row], b[row]));
            to[row] = null ? null_of<To> : value;
        }
    }

    // An operation that may fail.
    template <class T, class F>
    void try_map(const Instruction& i, F f) {
        const T *a = at<T>(i.a), *b = at<T>(i.b);
        const int64_t* mask = at<int64_t>(i.mask);
        T* to = at<T>(i.to);
        for (size_t row = 0, end = n; row < end; ++row) {
            bool null = is_null(a[row]) || is_null(b[row]);
            T value{};
            bool failed = !null && !f(a[row], b[row], &value);
            to[row] = null || failed ? null_of<T> : value;
            doubtful[row] |= static_cast<uint8_t>(failed && mask[row]);
        }
    }

    template <class A, class To, class F>
    void map_one(const Instruction& i, F f) {
        const A* a = at<A>(i.a);
        To* to = at<To>(i.to);
        for (size_t row = 0, end = n; row < end; ++row)
            to[row] = is_null(a[row]) ? null_of<To> : static_cast<To>(f(a[row]));
    }

    template <class A, class To, class F>
    void try_map_one(const Instruction& i, F f) {
        const A* a = at<A>(i.a);
        const int64_t* mask = at<int64_t>(i.mask);
        To* to = at<To>(i.to);
        for (size_t row = 0, end = n; row < end; ++row) {
            To value{};
            bool null = is_null(a[row]), failed = !null && !f(a[row], &value);
            to[row] = null || failed ? null_of<To> : value;
            doubtful[row] |= static_cast<uint8_t>(failed && mask[row]);
        }
    }

    // A function of a float, which fails where its value is not a number.
    template <class F>
    void real_function(const Instruction& i, F f) {
        try_map_one<double, double>(i, [f](double value, double* to) { return !is_null(*to = f(value)); });
    }

    // An operation that sees NULL.
    template <class A, class F>
    void see(const Instruction& i, int64_t* to, F f) {
        const A* a = at<A>(i.a);
        for (size_t row = 0, end = n; row < end; ++row) to[row] = f(a[row]);
    }

    template <class F>
    void mask(const Instruction& i, F f) {
        const int64_t *a = at<int64_t>(i.a), *mask = at<int64_t>(i.mask);
        int64_t* to = at<int64_t>(i.to);
        for (size_t row = 0, end = n; row < end; ++row) to[row] = mask[row] & static_cast<int64_t>(f(a[row]));
    }

    template <class T>
    void select(const Instruction& i) {
        const T *a = at<T>(i.a), *b = at<T>(i.b);
        const int64_t* mask = at<int64_t>(i.mask);
        T* to = at<T>(i.to);
        for (size_t row = 0, end = n; row < end; ++row) to[row] = mask[row] ? a[row] : b[row];
    }

    template <class T>
    void check(const Instruction& i, Wide limit) {
        const T* a = at<T>(i.a);
        const int64_t* mask = at<int64_t>(i.mask);
        for (size_t row = 0, end = n; row < end; ++row) {
            bool outside = !is_null(a[row]) && magnitude(static_cast<Wide>(a[row])) >= limit;
            doubtful[row] |= static_cast<uint8_t>(outside && mask[row]);
        }
    }

    template <Rounding rounding>
    void drop(const Instruction& i) {
        Wide unit = power_of_ten(i.k);
        map_one<Wide, Wide>(i, [unit](Wide value) { return dropped<rounding>(value, unit); });
    }

    void truth(const Instruction& i, int64_t decided) {
        const int64_t *a = at<int64_t>(i.a), *b = at<int64_t>(i.b);
        int64_t* to = at<int64_t>(i.to);
        for (size_t row = 0, end = n; row < end; ++row) {
            int64_t one = a[row], other = b[row];
            int64_t undecided = (is_null(one) | is_null(other)) ? NULL_CODE : 1 - decided;
            to[row] = ((one == decided) | (other == decided)) ? decided : undecided;
        }
    }

    void find(const Instruction& i, const InList& members) {
        int64_t otherwise = members.has_null ? NULL_CODE : 0;
        map_one<int64_t, int64_t>(i, [&](int64_t value) {
            return std::binary_search(members.codes.begin(), members.codes.end(), value) ? 1 : otherwise;
        });
    }

    // The order of texts is that of their bytes. A code that the dictionary does not hold is doubtful.
    template <class F>
    void compare_text(const Instruction& i, const Dictionary* dictionary, F holds) {
        const int64_t *a = at<int64_t>(i.a), *b = at<int64_t>(i.b), *mask = at<int64_t>(i.mask);
        int64_t* to = at<int64_t>(i.to);
        for (size_t row = 0, end = n; row < end; ++row) {
            bool null = is_null(a[row]) || is_null(b[row]);
            bool known = !null && dictionary->holds(a[row]) && dictionary->holds(b[row]);
            to[row] = known ? holds(dictionary->text(a[row]).compare(dictionary->text(b[row]))) : NULL_CODE;
            doubtful[row] |= static_cast<uint8_t>(!null && !known && mask[row]);
        }
    }

    bool look_up(const Instruction& i, CodeTable& table, bool requests) {
        const int64_t *a = at<int64_t>(i.a), *mask = at<int64_t>(i.mask);
        int64_t* to = at<int64_t>(i.to);
        bool complete = true;
        for (size_t row = 0, end = n; row < end; ++row) {
            CodeTable::State state = table.state(a[row]);
            to[row] = state == CodeTable::KNOWN ? table.value(a[row]) : NULL_CODE;
            if (state == CodeTable::KNOWN || !mask[row]) continue;
            if (state == CodeTable::DOUBTFUL) {
                doubtful[row] = 1;
            } else {
                if (requests) table.request(a[row]);
                complete = false;
            }
        }
        return complete;
    }

    bool read(const Instruction& i, const ForeignColumn& column, std::vector<int64_t>& missing) {
        const int64_t* mask = at<int64_t>(i.mask);
        int64_t* to = at<int64_t>(i.to);
        size_t before = missing.size();
        for (size_t row = 0, end = n; row < end; ++row) {
            uint8_t state = column.states[start + row];
            to[row] = state == CodeTable::KNOWN ? column.values[start + row] : NULL_CODE;
            if (state == CodeTable::DOUBTFUL) doubtful[row] |= static_cast<uint8_t>(mask[row]);
            if (state == CodeTable::MISSING && mask[row]) missing.push_back(static_cast<int64_t>(start + row));
        }
        return missing.size() == before;
    }

    void large_decimals(const Instruction& i, const Dictionary* dictionary) {
        try_map_one<int64_t, Wide>(i, [dictionary](int64_t code, Wide* to) {
            *to = code;
            if (code < LARGE_DECIMALS) return true;
            return dictionary && dictionary->holds(code) && dictionary->text(code).size() == sizeof(Wide) &&
                   read_number(dictionary->text(code), to);
        });
    }

    // Sixteen bytes, the largest first, of a number above its least.
    static bool read_number(std::string_view text, Wide* to) {
        UnsignedWide value = 0;
        for (char byte : text) value = value << 8 | static_cast<unsigned char>(byte);
        *to = static_cast<Wide>(value ^ static_cast<UnsignedWide>(1) << 127);
        return true;
    }

    void out_wide(const Instruction& i, int64_t* to) {
        const Wide* a = at<Wide>(i.a);
        for (size_t row = 0, end = n; row < end; ++row) {
            bool large = !is_null(a[row]) && magnitude(a[row]) >= LARGE_DECIMALS;
            to[row] = is_null(a[row]) ? NULL_CODE : static_cast<int64_t>(a[row]);
            doubtful[row] |= large;
        }
    }

    template <class Part>
    void part_of_date(const Instruction& i, Part part) {
        map_one<int64_t, int64_t>(i, [part](int64_t days) { return part(civil_of_days(days)); });
    }
};

}  // namespace ivme
