// Tables in Python: made and dropped, looked up by row, and read as columns.
#include <nanobind/stl/optional.h>

#include "bind.hpp"

namespace ivme {

namespace {

template <class Work>
auto changing(Kernel& kernel, Work work) {
    nb::gil_scoped_release release;
    auto lock = kernel.writing();
    return work();
}

template <class Work>
auto reading(Kernel& kernel, Work work) {
    nb::gil_scoped_release release;
    auto lock = kernel.reading();
    return work();
}

int64_t weight_of(Kernel& kernel, size_t id, const std::vector<int64_t>& row) {
    return changing(kernel, [&] {
        Heap& heap = kernel.heap(id);
        if (row.size() != heap.arity()) throw std::invalid_argument("a row has a code for each column");
        return heap.get(row.data());
    });
}

// All rows, or only the wanted columns of them, and their weights. Equal rows may come in several places.
nb::tuple rows_of(Kernel& kernel, size_t id, const std::optional<std::vector<unsigned>>& wanted) {
    std::vector<Array<int64_t>> columns;
    Array<int64_t> weights;
    size_t n = 0;
    {
        nb::gil_scoped_release release;
        auto lock = kernel.reading();
        const Heap& heap = kernel.heap(id);
        n = heap.size();
        auto taken = [&](const int64_t* from, Array<int64_t>& to) {
            to.resize(n);
            if (n == heap.high()) {
                std::copy_n(from, n, to.data());
                return;
            }
            size_t at = 0;
            for (size_t row = 0; row < heap.high(); ++row) {
                if (heap.weights()[row]) to[at++] = from[row];
            }
        };
        columns.resize(wanted ? wanted->size() : heap.arity());
        for (unsigned i = 0; i < columns.size(); ++i) {
            unsigned column = wanted ? (*wanted)[i] : i;
            if (column >= heap.arity()) throw std::invalid_argument("a table has no such column");
            taken(heap.column(column), columns[i]);
        }
        taken(heap.weights(), weights);
    }
    nb::list shown;
    for (auto& column : columns) shown.append(to_numpy(std::move(column), n));
    return nb::make_tuple(shown, to_numpy(std::move(weights), n));
}

}  // namespace

void bind_heap(nb::class_<Kernel>& kernel) {
    kernel
        .def("add_heap",
             [](Kernel& k, unsigned columns, std::vector<unsigned> key) {
                 return changing(k, [&] { return k.add_heap(columns, key); });
             })
        .def("drop_heap", [](Kernel& k, size_t id) { changing(k, [&] { k.drop_heap(id); }); })
        .def("heap_size", [](Kernel& k, size_t id) { return reading(k, [&] { return k.heap(id).size(); }); })
        .def("heap_is_distinct",
             [](Kernel& k, size_t id) { return reading(k, [&] { return k.heap(id).is_distinct(); }); })
        .def("heap_weight", &weight_of)
        .def("heap_rows", &rows_of, nb::arg("heap"), nb::arg("columns") = nb::none());
}

}  // namespace ivme
