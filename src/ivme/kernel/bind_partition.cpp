// Partitions from Python: `_kernel.pyi` says what goes in and out.
#include "bind.hpp"

namespace ivme {

namespace {

using Leaves = std::vector<std::vector<std::tuple<size_t, std::vector<unsigned>, std::vector<unsigned>>>>;

nb::list arrays(Keys& keys) {
    nb::list columns;
    for (auto& column : keys.columns) columns.append(to_numpy(std::move(column), keys.n));
    return columns;
}

size_t add_partition(Kernel& kernel, size_t heavy, const Leaves& given) {
    return exclusively(kernel, [&] {
        std::vector<std::vector<PartSpec>> leaves;
        for (const auto& leaf : given) {
            leaves.emplace_back();
            for (const auto& [map, key, values] : leaf) leaves.back().push_back({&kernel.map(map), key, values});
        }
        return kernel.add_partition(std::make_unique<Partition>(&kernel.map(heavy), leaves));
    });
}

// Rows with equal codes as one, and none where nothing is left: a batch as it is before it is cut.
nb::tuple net(Kernel& kernel, const std::vector<Codes>& columns, const Codes& weights) {
    Delta netted;
    std::vector<const int64_t*> from;
    for (const Codes& column : columns) {
        if (column.size() != weights.size()) throw std::invalid_argument("columns of different lengths");
        from.push_back(column.data());
    }
    exclusively(kernel, [&] {
        netted.shape(count_of(columns), Layout());
        kernel.machine.net(from, weights.data(), weights.size(), netted);
    });
    nb::list shown;
    for (auto& column : netted.columns) shown.append(to_numpy(std::move(column), netted.n));
    return nb::make_tuple(shown, to_numpy(std::move(netted.payloads), netted.n));
}

nb::tuple shown(NotedKeys keys) { return nb::make_tuple(arrays(keys.rising), arrays(keys.falling)); }

}  // namespace

void bind_partition(nb::class_<Kernel>& kernel) {
    kernel.def("add_partition", &add_partition)
        .def("drop_partition", [](Kernel& k, size_t id) { exclusively(k, [&] { k.drop_partition(id); }); })
        .def("set_bounds",
             [](Kernel& k, size_t id, uint64_t lower, uint64_t upper) {
                 exclusively(k, [&] {
                     k.partition(id).lower = lower;
                     k.partition(id).upper = upper;
                 });
             })
        .def("net", &net)
        .def("take_noted", [](Kernel& k, size_t id) { return shown(exclusively(k, [&] { return k.take_noted(id); })); })
        .def("sweep", [](Kernel& k, size_t id, uint64_t position,
                         uint64_t count) { return exclusively(k, [&] { return k.sweep(id, position, count); }); })
        .def("census",
             [](Kernel& k, size_t id, uint64_t threshold) {
                 return shown(exclusively(k, [&] { return k.machine.census(k.partition(id), threshold); }));
             })
        .def_prop_ro("scans", [](Kernel& k) { return shared(k, [&] { return k.machine.scans; }); });
}

}  // namespace ivme
