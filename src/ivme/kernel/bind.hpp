// What the bindings share: arrays to and from numpy, and the parts of the module.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "kernel.hpp"
#include "python_api.hpp"

namespace ivme {

namespace nb = nanobind;

using Codes = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Hands an array to numpy without copying it.
template <class T, class Shown = T>
nb::object to_numpy(Array<T> array, size_t n, size_t width = 1) {
    auto* owned = new Array<T>(std::move(array));
    nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<Array<T>*>(p); });
    auto* data = reinterpret_cast<Shown*>(owned->data());
    static T nothing{};
    if (!data) data = reinterpret_cast<Shown*>(&nothing);
    if (width == 1) return nb::cast(nb::ndarray<nb::numpy, Shown>(data, {n}, owner));
    return nb::cast(nb::ndarray<nb::numpy, Shown>(data, {n, width}, owner));
}

std::unique_ptr<Trigger> parse_trigger(Kernel& kernel, unsigned registers, const std::vector<std::string>& slots,
                                       const nb::list& steps);
std::shared_ptr<Reader> parse_reader(Kernel& kernel, unsigned inputs, unsigned variables, std::vector<unsigned> outputs,
                                     const nb::list& loops, const nb::list& factors, const nb::list& extremes,
                                     const nb::list& guards);
// A reader of several parts, which were readers and triggers and are no more.
std::shared_ptr<Union> parse_union(Kernel& kernel, unsigned inputs, unsigned outputs, std::vector<unsigned> asked,
                                   const nb::list& branches, bool disjoint, bool answered, const nb::list& pieces);
std::shared_ptr<Union> single(Kernel& kernel, std::shared_ptr<Reader> reader);

// So long a thread waits for a lock and keeps the GIL: cursors have the lock for less, and among busy threads it takes
// 5 ms for each of them until the GIL comes back.
constexpr std::chrono::milliseconds PATIENCE(2);

// A lock that is waited for without the GIL if it is not free soon: its holder may want the GIL before letting go.
template <class Attempt, class Wait>
auto lock_with_python(Attempt attempt, Wait wait) {
    auto lock = attempt(PATIENCE);
    if (!lock.owns_lock()) {
        nb::gil_scoped_release release;
        lock = wait();
    }
    return lock;
}
inline Kernel::Writing write_lock(const Kernel& kernel) {
    return lock_with_python([&](auto patience) { return kernel.try_writing(patience); },
                            [&] { return kernel.writing(); });
}
inline Kernel::Reading read_lock(const Kernel& kernel) {
    return lock_with_python([&](auto patience) { return kernel.try_reading(patience); },
                            [&] { return kernel.reading(); });
}

// Work under a lock and without the GIL.
template <class Work>
auto exclusively(const Kernel& kernel, Work work) {
    nb::gil_scoped_release release;
    auto lock = kernel.writing();
    return work();
}
template <class Work>
auto shared(const Kernel& kernel, Work work) {
    nb::gil_scoped_release release;
    auto lock = kernel.reading();
    return work();
}

Dictionary* dictionary_of(nb::handle object);
void bind_arrow(nb::module_& m);
void bind_closure(nb::module_& m);
void bind_dictionary(nb::module_& m);
void bind_expression(nb::module_& m);
void bind_following(nb::module_& m);
void bind_heap(nb::class_<Kernel>& kernel);
void bind_ordered(nb::module_& m);
void bind_partition(nb::class_<Kernel>& kernel);
void bind_reading(nb::module_& m, nb::class_<Kernel>& kernel);
void bind_transaction(nb::module_& m);

}  // namespace ivme
