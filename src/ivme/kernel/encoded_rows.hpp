// A record batch as the codes of its columns, between being encoded and being applied.
#pragma once

#include "arrow_columns.hpp"
#include "heap.hpp"
#include "loaded_rows.hpp"

namespace ivme {

// A record batch as codes: some in Arrow's memory, which is kept for that, the others one behind the other. `outputs`
// are those of expressions, once they are computed. Columns that are `unread` have no codes.
struct EncodedRows {
    EncodedRows() = default;
    EncodedRows(const EncodedRows&) = delete;
    EncodedRows& operator=(const EncodedRows&) = delete;
    ~EncodedRows() { SpareCodes::shared().give(std::move(codes)); }

    // As columns for Python, which compares codes: those with loose strings are left out. The rows are spent then.
    nb::object columns() { return ArrowColumns::shown(shared, std::move(codes), n, array, loose, unread); }
    // The same for one who looks at them now; `self` are the rows.
    nb::list views(const nb::object& self) const {
        nb::list found;
        for (const int64_t* column : places()) {
            found.append(nb::cast(nb::ndarray<nb::numpy, const int64_t, nb::ndim<1>>(column, {n}, self)));
        }
        return found;
    }
    // Where each column lies, with those of expressions behind; for unread ones some words as many as rows.
    std::vector<const int64_t*> places() const {
        std::vector<const int64_t*> found;
        const int64_t* next = codes.data();
        for (unsigned c = 0; c < shared.size(); ++c) {
            bool is_coded = !shared[c] && !has_place(unread, c);
            found.push_back(is_coded ? next : shared[c] ? shared[c] : codes.data());
            if (is_coded) next += n;
        }
        for (size_t at = 0; at < outputs.size(); at += n) found.push_back(outputs.data() + at);
        return found;
    }

    // The rows are in a table now, so that it holds the strings that came with them.
    void keep_strings(Heap& heap) const {
        if (!heap.is_kept()) return;
        for (const auto& [dictionary, weight] : brought) {
            dictionary->keep(weight);
        }
        if (!brought.empty()) heap.hold_codes(n);
    }

    // Whether the codes may be others' by now.
    bool are_outdated() const {
        return std::any_of(sweeps.begin(), sweeps.end(),
                           [](const auto& seen) { return seen.first->sweeps() != seen.second; });
    }

    size_t n = 0, entry = 0, generation = 0;
    size_t work = 0;                                             // as that of how many values
    std::vector<std::pair<const Dictionary*, uint64_t>> sweeps;  // how many there had been before
    std::vector<const int64_t*> shared;
    std::vector<unsigned> loose;   // columns with loose strings, which nothing but the table takes
    std::vector<unsigned> unread;  // columns that nothing takes, in a table that keeps no rows
    Array<int64_t> codes, outputs;
    Brought brought;
    uint64_t constants = 0;              // those by which the outputs were computed beside another batch
    std::unique_ptr<LoadedRows> loaded;  // what was loaded beside it
    nb::object array;
};

}  // namespace ivme
