// What followed views need: aggregates finished by column, and the rows that are kept. Users of these hold the lock of
// the database.
#include "bind.hpp"
#include "finishing.hpp"
#include "kept_rows.hpp"

namespace ivme {

namespace {

NewRows new_rows(const std::vector<Codes>& keys, size_t groups, const Codes& numbers,
                 const std::vector<Codes>& values) {
    NewRows now;
    now.rows.resize(groups);
    for (size_t i = 0; i < groups; ++i) now.rows[i] = NIL;
    for (size_t i = 0; i < numbers.size(); ++i) {
        auto group = static_cast<size_t>(numbers.data()[i]);
        if (group >= groups) throw std::invalid_argument("a row has the number of no group");
        now.rows[group] = static_cast<uint32_t>(i);
    }
    for (const Codes& column : keys) {
        if (column.size() != groups) throw std::invalid_argument("columns of different lengths");
        now.keys.push_back(column.data());
    }
    for (const Codes& column : values) {
        if (column.size() != numbers.size()) throw std::invalid_argument("columns of different lengths");
        now.values.push_back(column.data());
    }
    return now;
}

void require_width(const KeptRows& kept, const NewRows& now) {
    if (now.keys.size() + now.values.size() != kept.width()) throw std::invalid_argument("rows of another width");
}

nb::tuple shown(Delta& delta) {
    nb::list columns;
    for (auto& column : delta.columns) columns.append(to_numpy(std::move(column), delta.n));
    return nb::make_tuple(columns, to_numpy(std::move(delta.payloads), delta.n));
}

nb::tuple compare(KeptRows& kept, const std::vector<Codes>& keys, size_t groups, const Codes& numbers,
                  const std::vector<Codes>& values) {
    NewRows now = new_rows(keys, groups, numbers, values);
    require_width(kept, now);
    Delta changes;
    {
        nb::gil_scoped_release release;
        changes.shape(kept.width(), Layout());
        changes.reserve(2 * groups);
        kept.reserve(groups);
        kept.compare(now, changes);
    }
    return shown(changes);
}

void put(KeptRows& kept, const std::vector<Codes>& keys, size_t groups, const Codes& numbers,
         const std::vector<Codes>& values) {
    NewRows now = new_rows(keys, groups, numbers, values);
    require_width(kept, now);
    nb::gil_scoped_release release;
    kept.put(now);
}

nb::list columns(const KeptRows& kept) {
    Delta all;
    {
        nb::gil_scoped_release release;
        all.shape(kept.width(), Layout());
        all.reserve(kept.size());
        kept.each_row([&](const int64_t* row) {
            size_t at = all.extend(1);
            for (unsigned w = 0; w < kept.width(); ++w) all.columns[w][at] = row[w];
        });
    }
    return nb::list(shown(all)[0]);
}

using Sums = nb::ndarray<const int64_t, nb::c_contig, nb::device::cpu>;
using Floats = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

struct Finishing {
    Finishing(const Sums& totals, const Codes& rows) : sums(totals.data()), counts(rows.data()), n(rows.size()) {
        if (totals.ndim() < 1 || totals.ndim() > 2 || totals.shape(0) != n)
            throw std::invalid_argument("a sum for each count");
        width = totals.ndim() == 1 ? 1 : static_cast<unsigned>(totals.shape(1));
        codes.resize(n);
    }
    // None if a total was left out.
    nb::object shown(bool all) { return all ? to_numpy(std::move(codes), n) : nb::none(); }

    const int64_t* sums;
    const int64_t* counts;
    size_t n;
    unsigned width;
    Array<int64_t> codes;
};

nb::object sum_codes(const Sums& sums, const Codes& counts, int64_t most) {
    Finishing made(sums, counts);
    return made.shown(finish_sums(made.sums, made.width, made.counts, made.n, most, made.codes.data()));
}

nb::object mean_codes(const Sums& sums, const Codes& counts) {
    Finishing made(sums, counts);
    return made.shown(finish_means(made.sums, made.width, made.counts, made.n, made.codes.data()));
}

nb::object decimal_mean_codes(const Sums& sums, const Codes& counts, int64_t factor, int64_t most) {
    Finishing made(sums, counts);
    if (factor <= 0 || factor > EXACT) return nb::none();
    return made.shown(
        finish_decimal_means(made.sums, made.width, made.counts, made.n, factor, most, made.codes.data()));
}

nb::object variance_codes(const Sums& sums, const Sums& squares, const Codes& counts, int64_t unit, bool root,
                          bool population) {
    Finishing made(sums, counts);
    if (squares.ndim() != 2 || squares.shape(0) != made.n || squares.shape(1) != 3)
        throw std::invalid_argument("a sum of squares of three words for each count");
    return made.shown(finish_variances(made.sums, made.width, squares.data(), made.counts, made.n, unit, root,
                                       population, made.codes.data()));
}

nb::object float_codes(const Floats& sums, const Codes& counts, bool mean) {
    if (sums.size() != counts.size()) throw std::invalid_argument("a sum for each count");
    Array<int64_t> codes;
    codes.resize(counts.size());
    finish_floats(sums.data(), counts.data(), counts.size(), mean, codes.data());
    return to_numpy(std::move(codes), counts.size());
}

}  // namespace

void bind_following(nb::module_& m) {
    nb::class_<KeptRows>(m, "KeptRows")
        .def(nb::init<unsigned, unsigned, uint64_t>())
        .def("__len__", &KeptRows::size)
        .def("compare", &compare)
        .def("put", &put)
        .def("memory_bytes", &KeptRows::bytes)
        .def("columns", &columns);
    m.def("sum_codes", &sum_codes);
    m.def("mean_codes", &mean_codes);
    m.def("decimal_mean_codes", &decimal_mean_codes);
    m.def("variance_codes", &variance_codes);
    m.def("float_codes", &float_codes);
}

}  // namespace ivme
