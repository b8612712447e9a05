// The stream of changes as `compiled.py` writes it: columns of each table, and runs of rows that come or go.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

template <class T>
std::vector<T> read_all(const std::string& path) {
    std::FILE* file = std::fopen(path.c_str(), "rb");
    if (!file) {
        std::fprintf(stderr, "%s cannot be read\n", path.c_str());
        std::exit(1);
    }
    std::fseek(file, 0, SEEK_END);
    std::vector<T> items(static_cast<size_t>(std::ftell(file)) / sizeof(T));
    std::rewind(file);
    if (std::fread(items.data(), sizeof(T), items.size(), file) != items.size()) std::exit(1);
    std::fclose(file);
    return items;
}

// A run of rows of one table; one of table -1 ends a batch.
struct Run {
    int64_t table, sign, start, rows;
};

// A column of a table whose rows lie one behind the other, each with all of its columns, as they were parsed.
template <class T>
struct Field {
    const char* first;
    size_t stride;
    const T& operator[](size_t row) const { return *reinterpret_cast<const T*>(first + row * stride); }
};
using Integers = Field<int64_t>;  // keys, and dates as days
using Doubles = Field<double>;    // decimals
using Strings = Field<std::string_view>;

// The tables, from a folder with a file for each column. `layout` has a line for each: its table, its name, and i, n or
// s.
class Source {
public:
    explicit Source(std::string folder) : folder_(std::move(folder)) {
        std::ifstream layout(folder_ + "/layout");
        std::string table, name;
        char kind;
        while (layout >> table >> name >> kind) {
            Rows& rows = tables_[table];
            columns_[name] = {table, rows.stride, kind};
            rows.stride += kind == 's' ? sizeof(std::string_view) : 8;
        }
        for (const auto& [column, place] : columns_) fill(column, place, tables_[place.table]);
    }

    Integers integers(const char* column) const { return field<int64_t>(column); }
    Doubles doubles(const char* column) const { return field<double>(column); }
    Strings strings(const char* column) const { return field<std::string_view>(column); }
    std::vector<Run> runs() const { return read_all<Run>(folder_ + "/runs"); }

private:
    struct Rows {
        size_t stride = 0;
        std::vector<char> bytes;
    };
    struct Place {
        std::string table;
        size_t offset;
        char kind;
    };

    template <class T>
    Field<T> field(const char* column) const {
        const Place& place = columns_.at(column);
        const Rows& rows = tables_.at(place.table);
        return {rows.bytes.data() + place.offset, rows.stride};
    }

    void fill(const std::string& column, const Place& place, Rows& rows) {
        if (place.kind != 's') return put(read_all<int64_t>(folder_ + "/" + column), place, rows);
        texts_.push_back(read_all<char>(folder_ + "/" + column));
        std::vector<std::string_view> strings;
        int64_t start = 0;
        for (int64_t end : read_all<int64_t>(folder_ + "/" + column + ".ends")) {
            strings.emplace_back(texts_.back().data() + start, static_cast<size_t>(end - start));
            start = end;
        }
        put(strings, place, rows);
    }

    template <class T>
    static void put(const std::vector<T>& values, const Place& place, Rows& rows) {
        rows.bytes.resize(values.size() * rows.stride);
        for (size_t row = 0; row < values.size(); ++row) {
            std::memcpy(rows.bytes.data() + row * rows.stride + place.offset, &values[row], sizeof(T));
        }
    }

    std::string folder_;
    std::map<std::string, Rows> tables_;
    std::map<std::string, Place> columns_;
    std::vector<std::vector<char>> texts_;
};

enum Table : int64_t { REGION, NATION, SUPPLIER, CUSTOMER, ORDERS, LINEITEM };

// Days since 1970, as Arrow has dates.
constexpr int64_t day(int y, int m, int d) {
    y -= m <= 2;
    int era = y / 400, of_era = y - era * 400, of_year = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
    return era * 146097LL + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}
