// Tables in Python: made and dropped, looked up by row, read as columns, and checked with all maps.
#include <nanobind/stl/optional.h>

#include <limits>
#include <mutex>

#include "bind.hpp"

namespace ivme {

namespace {

template <class Work>
auto changing(Kernel& kernel, Work work) {
    nb::gil_scoped_release release;
    auto lock = kernel.writing();
    return work();
}

constexpr size_t ALL = std::numeric_limits<size_t>::max();

template <class Work>
auto reading(Kernel& kernel, Work work) {
    nb::gil_scoped_release release;
    auto lock = kernel.reading();
    return work();
}

// Reading that compares strings.
template <class Work>
auto comparing(Kernel& kernel, Work work) {
    return reading(kernel, [&] {
        auto strings = kernel.hold_dictionaries();
        return work();
    });
}

// A table whose rows are there to be read.
Heap& rows_in(Kernel& kernel, size_t id) {
    Heap& heap = kernel.heap(id);
    if (!heap.is_kept() && heap.size()) throw std::logic_error("the rows of the table are not kept");
    return heap;
}

int64_t weight_of(Kernel& kernel, size_t id, const std::vector<int64_t>& row) {
    return changing(kernel, [&] {
        auto strings = kernel.hold_dictionaries();
        Heap& heap = rows_in(kernel, id);
        if (row.size() != heap.arity()) throw std::invalid_argument("a row has a code for each column");
        return heap.get(row.data());
    });
}

unsigned arity_of(Kernel& kernel, size_t id) {
    auto lock = kernel.reading();
    return kernel.heap(id).arity();
}

bool let_be_loose(Kernel& kernel, size_t id, unsigned column, nb::handle object) {
    Dictionary* dictionary = dictionary_of(object);
    return changing(kernel, [&] {
        Heap& heap = kernel.heap(id);
        bool is_loose = column < heap.arity() && heap.let_be_loose(column, dictionary);
        if (is_loose) kernel.compare_by(dictionary);
        return is_loose;
    });
}

// Gives strings of a column one code each, from one place to another. Without the GIL.
void enter(Kernel& kernel, size_t id, unsigned column, size_t first, size_t end) {
    {
        auto lock = kernel.reading();
        const Heap& heap = rows_in(kernel, id);
        if (column >= heap.arity()) throw std::invalid_argument("a table has no such column");
        if (heap.is_entered(column)) return;
    }
    auto lock = kernel.writing();
    std::unique_lock strings(kernel.heap(id).loose(column)->mutex);
    kernel.heap(id).enter(column, first, end);
}

// All rows, or only the wanted columns of them, and their weights. Equal rows may come in several places. With `loose`,
// equal strings may have several codes.
nb::tuple rows_of(Kernel& kernel, size_t id, const std::optional<std::vector<unsigned>>& wanted, bool loose) {
    std::vector<Array<int64_t>> columns;
    Array<int64_t> weights;
    size_t n = 0;
    {
        nb::gil_scoped_release release;
        size_t all = wanted ? wanted->size() : arity_of(kernel, id);
        for (unsigned i = 0; i < all && !loose; ++i) enter(kernel, id, wanted ? (*wanted)[i] : i, 0, ALL);
        auto lock = kernel.reading();
        const Heap& heap = rows_in(kernel, id);
        n = heap.size();
        auto taken = [&](const auto& from, Array<int64_t>& to) {
            to.resize(heap.high());
            from(to.data());
            if (n == heap.high()) return;
            size_t at = 0;
            for (size_t row = 0; row < heap.high(); ++row) {
                if (heap.weights()[row]) to[at++] = to[row];
            }
        };
        columns.resize(wanted ? wanted->size() : heap.arity());
        for (unsigned i = 0; i < columns.size(); ++i) {
            unsigned column = wanted ? (*wanted)[i] : i;
            if (column >= heap.arity()) throw std::invalid_argument("a table has no such column");
            taken([&](int64_t* to) { heap.column(column).copy(0, heap.high(), to); }, columns[i]);
        }
        taken([&](int64_t* to) { heap.weights().copy(0, heap.high(), to); }, weights);
    }
    nb::list shown;
    for (auto& column : columns) shown.append(to_numpy(std::move(column), n));
    return nb::make_tuple(shown, to_numpy(std::move(weights), n));
}

using Column = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Numbers from `first` on of a column, or of the weights, of all places: where a weight is zero, there is no row.
template <class Copy>
nb::object places_of(Kernel& kernel, size_t id, size_t first, size_t end, Copy copy) {
    Array<int64_t> found;
    {
        nb::gil_scoped_release release;
        auto lock = kernel.reading();
        const Heap& heap = rows_in(kernel, id);
        end = std::min(end, heap.high());
        first = std::min(first, end);
        found.resize(end - first);
        copy(heap, first, end - first, found.data());
    }
    return to_numpy(std::move(found), end - first);
}

// The weights of all places in a byte each, to take them down quickly; those that a byte does not hold are 255, and
// come by their places.
nb::tuple small_weights_of(Kernel& kernel, size_t id) {
    constexpr int64_t LARGE = 255;
    Array<uint8_t> small;
    Array<int64_t> places, large;
    size_t n = 0;
    {
        nb::gil_scoped_release release;
        auto lock = kernel.reading();
        const Heap& heap = rows_in(kernel, id);
        n = heap.high();
        small.resize(n);
        const NarrowColumn& weights = heap.weights();
        bool all = true;
        for (size_t i = 0; i < n; ++i) {
            bool fits = weights[i] >= 0 && weights[i] < LARGE;
            small[i] = static_cast<uint8_t>(fits ? weights[i] : LARGE);
            all &= fits;
        }
        for (size_t i = 0; !all && i < n; ++i) {
            if (small[i] != LARGE) continue;
            places.push(static_cast<int64_t>(i));
            large.push(weights[i]);
        }
    }
    size_t rest = places.size();
    return nb::make_tuple(to_numpy(std::move(small), n), to_numpy(std::move(places), rest),
                          to_numpy(std::move(large), rest));
}

nb::object column_of(Kernel& kernel, size_t id, unsigned column, size_t first, size_t end) {
    {
        nb::gil_scoped_release release;
        enter(kernel, id, column, first, end);
    }
    return places_of(kernel, id, first, end, [&](const Heap& heap, size_t from, size_t n, int64_t* to) {
        if (column >= heap.arity()) throw std::invalid_argument("a table has no such column");
        heap.column(column).copy(from, n, to);
    });
}

// The rows that have one of these keys, which are distinct.
nb::list rows_of_keys(Kernel& kernel, size_t id, const std::vector<Column>& keys) {
    std::vector<Array<int64_t>> columns;
    size_t n = 0, given = keys.empty() ? 0 : keys[0].shape(0);
    std::vector<const int64_t*> words;
    for (const Column& key : keys) {
        if (key.shape(0) != given) throw std::invalid_argument("the columns of keys differ in length");
        words.push_back(key.data());
    }
    {
        nb::gil_scoped_release release;
        auto lock = kernel.writing();
        Heap& heap = rows_in(kernel, id);
        if (words.size() != heap.key_columns() || !heap.is_distinct())
            throw std::invalid_argument("a key has a column for each of the table's primary key");
        std::vector<uint32_t> ids;
        for (size_t row = 0; row < given; ++row) {
            uint32_t found = heap.find_key(words.data(), row);
            if (found != NIL) ids.push_back(found);
        }
        n = ids.size();
        columns.resize(heap.arity());
        for (unsigned c = 0; c < heap.arity(); ++c) {
            columns[c].resize(n);
            std::unique_lock<std::shared_mutex> strings;
            if (!heap.is_entered(c)) strings = std::unique_lock(heap.loose(c)->mutex);
            for (size_t i = 0; i < n; ++i) {
                if (strings.owns_lock()) heap.enter(c, ids[i], ids[i] + 1);
                columns[c][i] = heap.column(c)[ids[i]];
            }
        }
    }
    nb::list shown;
    for (auto& column : columns) shown.append(to_numpy(std::move(column), n));
    return shown;
}

}  // namespace

void bind_heap(nb::class_<Kernel>& kernel) {
    kernel
        .def(
            "add_heap",
            [](Kernel& k, unsigned columns, std::vector<unsigned> key, bool is_kept) {
                return changing(k, [&] { return k.add_heap(columns, key, is_kept); });
            },
            nb::arg("columns"), nb::arg("key"), nb::arg("is_kept") = true)
        .def("drop_heap", [](Kernel& k, size_t id) { changing(k, [&] { k.drop_heap(id); }); })
        .def("heap_size", [](Kernel& k, size_t id) { return reading(k, [&] { return k.heap(id).size(); }); })
        .def("heap_changes", [](Kernel& k, size_t id) { return reading(k, [&] { return k.heap(id).changes(); }); })
        .def("heap_is_distinct",
             [](Kernel& k, size_t id) { return reading(k, [&] { return k.heap(id).is_distinct(); }); })
        .def("heap_weight", &weight_of)
        .def("heap_places",
             [](Kernel& k, size_t id) {
                 return reading(k, [&] { return std::pair(k.heap(id).high(), k.heap(id).moves()); });
             })
        .def("heap_column", &column_of)
        .def("heap_weights",
             [](Kernel& k, size_t id, size_t first, size_t end) {
                 return places_of(k, id, first, end, [](const Heap& heap, size_t from, size_t n, int64_t* to) {
                     heap.weights().copy(from, n, to);
                 });
             })
        .def("heap_small_weights", &small_weights_of)
        .def("heap_rows_of_keys", &rows_of_keys)
        .def("digest", [](Kernel& k) { return comparing(k, [&] { return k.digest(); }); })
        .def("verify", [](Kernel& k) { comparing(k, [&] { k.verify(); }); })
        .def("let_be_loose", &let_be_loose, nb::keep_alive<1, 4>())
        .def("heap_rows", &rows_of, nb::arg("heap"), nb::arg("columns") = nb::none(), nb::arg("loose") = false);
}

}  // namespace ivme
