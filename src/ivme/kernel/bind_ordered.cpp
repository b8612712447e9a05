// Ordered maps in Python. Users of these hold the lock of the database.
#include <mutex>

#include "bind.hpp"
#include "ordered_map.hpp"

namespace ivme {

namespace {

// Position, DESC, NULLS FIRST, the dictionary that codes are compared by, and whether first bytes are kept.
using Column = std::tuple<unsigned, bool, bool, nb::object, bool>;
// Offset, limit, kind of ties (0 none, 1 rows like the last, 2 values), and the columns that tell rows apart.
using Window = std::tuple<int64_t, int64_t, unsigned, unsigned>;

class PyOrderedMap {
public:
    PyOrderedMap(const std::vector<Column>& columns, unsigned groups, std::vector<unsigned> summed, unsigned room)
        : map_(keys_of(columns), groups, checked(columns, groups, std::move(summed)), room), groups_(groups) {
        for (const Column& column : columns) {
            const nb::object& dictionary = std::get<3>(column);
            if (!dictionary.is_none()) kept_.push_back(dictionary);
        }
    }

    void load(const std::vector<Codes>& columns, const Codes& weights) {
        auto rows = pointers(columns, arity(), weights.size());
        run([&] { map_.load(rows, weights.data(), weights.size()); });
    }

    void apply(const std::vector<Codes>& columns, const Codes& weights) {
        auto rows = pointers(columns, arity(), weights.size());
        run([&] { map_.apply(rows, weights.data(), weights.size()); });
    }

    nb::tuple apply_shown(const std::vector<Codes>& columns, const Codes& weights, const Window& window) {
        auto rows = pointers(columns, arity(), weights.size());
        Delta moved;
        run([&] {
            moved.shape(arity(), Layout());
            map_.apply(rows, weights.data(), weights.size(), window_of(window), moved);
        });
        return nb::make_tuple(listed(moved), to_numpy(std::move(moved.payloads), moved.n));
    }

    void commit() {
        run([&] { map_.commit(); });
    }
    void roll_back() {
        run([&] { map_.roll_back(); });
    }

    // For rows of codes of the first columns of the order: the copies before the first that is like one or behind it.
    nb::object ranks(const std::vector<Codes>& columns, size_t n, bool after) {
        auto given = pointers(columns, columns.size(), n);
        if (columns.size() > arity()) throw std::invalid_argument("more columns than an entry has");
        Array<int64_t> found;
        run([&] {
            found.resize(n);
            unsigned words = map_.keys().words_of(count_of(columns));
            each(given, n, [&](size_t i, const int64_t* row) { found[i] = map_.tree().rank(row, words, after); });
        });
        return to_numpy(std::move(found), n);
    }

    // For groups, the ranks of what is shown of each.
    nb::tuple shown(const std::vector<Codes>& columns, size_t n, const Window& window) {
        if (columns.size() != groups_) throw std::invalid_argument("a column of codes for each of a group");
        auto given = pointers(columns, groups_, n);
        Array<int64_t> first, last;
        run([&] {
            first.resize(n);
            last.resize(n);
            each(given, n, [&](size_t i, const int64_t* row) {
                std::tie(first[i], last[i]) = map_.shown(row, window_of(window));
            });
        });
        return nb::make_tuple(to_numpy(std::move(first), n), to_numpy(std::move(last), n));
    }

    // For all groups, in their order.
    nb::tuple all_shown(const Window& window) {
        Array<int64_t> first, last;
        run([&] { map_.all_shown(window_of(window), first, last); });
        size_t n = first.size();
        return nb::make_tuple(to_numpy(std::move(first), n), to_numpy(std::move(last), n));
    }

    // The rows of spans of ranks, each with the number of its span and its copies there.
    nb::tuple rows(const Codes& first, const Codes& last) {
        if (first.size() != last.size()) throw std::invalid_argument("a last rank for each first");
        Delta found;
        Array<int64_t> numbers;
        run([&] {
            found.shape(arity(), Layout());
            for (size_t i = 0; i < first.size(); ++i) {
                map_.tree().scan(first.data()[i], last.data()[i], [&](const int64_t* row, int64_t copies) {
                    size_t at = found.extend(1);
                    for (unsigned c = 0; c < arity(); ++c) found.columns[c][at] = map_.keys().code(row, c);
                    found.payload(at)[0] = copies;
                    numbers.push(static_cast<int64_t>(i));
                });
            }
        });
        return nb::make_tuple(to_numpy(std::move(numbers), found.n), listed(found),
                              to_numpy(std::move(found.payloads), found.n));
    }

    // For each rank, what is before it: for each summed column the sums in two words, and the values that are not NULL.
    nb::tuple totals(const Codes& ranks) {
        size_t n = ranks.size(), slots = map_.tree().summed().size();
        std::vector<Array<int64_t>> sums(slots), known(slots);
        run([&] {
            for (auto& each : sums) each.resize(2 * n);
            for (auto& each : known) each.resize(n);
            for (size_t i = 0; i < n; ++i) {
                OrderedTotals found = map_.tree().totals(ranks.data()[i]);
                for (size_t s = 0; s < slots; ++s) {
                    store_wide(sums[s].data() + 2 * i, found.sums[s]);
                    known[s][i] = found.known[s];
                }
            }
        });
        nb::list all_sums, all_known;
        for (auto& each : sums) all_sums.append(to_numpy(std::move(each), n, 2));
        for (auto& each : known) all_known.append(to_numpy(std::move(each), n));
        return nb::make_tuple(all_sums, all_known);
    }

    // The codes of dictionaries that it has, by column: those of rows that are gone and that others are compared with
    // among them.
    nb::list codes() {
        std::vector<unsigned> places;
        for (const OrderedColumn& column : map_.keys().columns()) {
            if (column.order) places.push_back(column.column);
        }
        std::vector<Array<int64_t>> found(places.size());
        run([&] {
            auto take = [&](const int64_t* row) {
                for (size_t i = 0; i < places.size(); ++i) found[i].push(map_.keys().code(row, places[i]));
            };
            map_.tree().each(take);
            map_.tree().each_bound(take);
        });
        nb::list shown;
        for (auto& each : found) {
            size_t n = each.size();
            shown.append(to_numpy(std::move(each), n));
        }
        return shown;
    }

    const OrderedMap& map() const { return map_; }
    void check() const { map_.tree().check(); }

private:
    static OrderedKeys keys_of(const std::vector<Column>& columns) {
        std::vector<OrderedColumn> order;
        std::vector<bool> seen(columns.size());
        for (const auto& [position, descending, nulls_first, dictionary, prefixed] : columns) {
            if (position >= columns.size() || seen[position]) throw std::invalid_argument("each column once");
            seen[position] = true;
            const Dictionary* strings = dictionary.is_none() ? nullptr : dictionary_of(dictionary);
            order.push_back({position, descending, nulls_first, strings, prefixed});
        }
        return OrderedKeys(std::move(order));
    }

    static std::vector<unsigned> checked(const std::vector<Column>& columns, unsigned groups,
                                         std::vector<unsigned> summed) {
        if (groups > columns.size()) throw std::invalid_argument("more columns of groups than columns");
        for (unsigned each : summed) {
            if (each >= columns.size()) throw std::invalid_argument("a sum of no column");
        }
        return summed;
    }

    static OrderedWindow window_of(const Window& window) {
        auto [offset, limit, ties, ordered_by] = window;
        constexpr int64_t MOST = int64_t{1} << 61;
        if (offset < 0 || limit < 0 || ties > 2) throw std::invalid_argument("no such window");
        return {std::min(offset, MOST), std::min(limit, MOST), static_cast<OrderedWindow::Ties>(ties), ordered_by};
    }

    static std::vector<const int64_t*> pointers(const std::vector<Codes>& columns, size_t width, size_t rows) {
        if (columns.size() != width) throw std::invalid_argument("rows of another width");
        std::vector<const int64_t*> found;
        for (const Codes& column : columns) {
            if (column.size() != rows) throw std::invalid_argument("columns of different lengths");
            found.push_back(column.data());
        }
        return found;
    }

    // Without the GIL, while strings stay where they are.
    template <class Act>
    void run(Act act) {
        nb::gil_scoped_release release;
        std::vector<std::shared_lock<std::shared_mutex>> held;
        std::vector<const Dictionary*> seen;
        for (const OrderedColumn& column : map_.keys().columns()) {
            if (!column.order || std::find(seen.begin(), seen.end(), column.order) != seen.end()) continue;
            seen.push_back(column.order);
        }
        std::sort(seen.begin(), seen.end());
        for (const Dictionary* dictionary : seen) held.emplace_back(dictionary->mutex);
        act();
    }

    // The words of rows that are given in the order of the map's columns.
    template <class Visit>
    void each(const std::vector<const int64_t*>& columns, size_t n, Visit visit) const {
        const OrderedKeys& keys = map_.keys();
        std::vector<int64_t> row(keys.words() + 1);
        std::vector<unsigned> places(keys.arity());
        for (unsigned i = 0; i < keys.arity(); ++i) places[keys.columns()[i].column] = i;
        for (size_t i = 0; i < n; ++i) {
            keys.encode([&](unsigned column) { return columns[places[column]][i]; }, count_of(columns), row.data());
            visit(i, row.data());
        }
    }

    static nb::list listed(Delta& delta) {
        nb::list columns;
        for (auto& column : delta.columns) columns.append(to_numpy(std::move(column), delta.n));
        return columns;
    }

    unsigned arity() const { return map_.keys().arity(); }

    OrderedMap map_;
    unsigned groups_;
    std::vector<nb::object> kept_;
};

}  // namespace

void bind_ordered(nb::module_& m) {
    nb::class_<PyOrderedMap>(m, "OrderedMap")
        .def(nb::init<const std::vector<Column>&, unsigned, std::vector<unsigned>, unsigned>(), nb::arg("columns"),
             nb::arg("groups"), nb::arg("summed"), nb::arg("room") = 0)
        .def("__len__", [](const PyOrderedMap& self) { return self.map().tree().size(); })
        .def_prop_ro("copies", [](const PyOrderedMap& self) { return self.map().tree().copies(); })
        .def_prop_ro("operations", [](const PyOrderedMap& self) { return self.map().tree().operations; })
        .def("load", &PyOrderedMap::load)
        .def("apply", &PyOrderedMap::apply)
        .def("apply_shown", &PyOrderedMap::apply_shown)
        .def("commit", &PyOrderedMap::commit)
        .def("roll_back", &PyOrderedMap::roll_back)
        .def("ranks", &PyOrderedMap::ranks)
        .def("shown", &PyOrderedMap::shown)
        .def("all_shown", &PyOrderedMap::all_shown)
        .def("rows", &PyOrderedMap::rows)
        .def("totals", &PyOrderedMap::totals)
        .def("codes", &PyOrderedMap::codes)
        .def("check", &PyOrderedMap::check)
        .def("memory_bytes", [](const PyOrderedMap& self) { return self.map().bytes(); });
}

}  // namespace ivme
