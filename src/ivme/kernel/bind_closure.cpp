#include <nanobind/stl/unique_ptr.h>

#include "bind.hpp"
#include "closure.hpp"

namespace ivme {

namespace {

// An enumeration of pairs; it holds the nodes of one group at a time.
class ClosureCursor {
public:
    ClosureCursor(const Closure& closure, std::vector<uint32_t> sources)
        : closure_(closure), version_(closure.version()), sources_(std::move(sources)) {}

    nb::tuple next(size_t most) {
        if (version_ != closure_.version()) throw Stale();
        Array<int64_t> from, to;
        {
            nb::gil_scoped_release release;
            fill(most, from, to);
        }
        size_t n = from.size();
        return nb::make_tuple(to_numpy(std::move(from), n), to_numpy(std::move(to), n));
    }

private:
    void fill(size_t most, Array<int64_t>& from, Array<int64_t>& to) {
        while (source_ < sources_.size() && from.size() < most) {
            uint32_t node = sources_[source_];
            uint64_t group = closure_.group(node) + 1;
            if (group != group_) closure_.targets(node, targets_);
            group_ = group;
            int64_t code = closure_.graph().code(node);
            for (; target_ < targets_.size() && from.size() < most; ++target_) {
                from.push(code);
                to.push(closure_.graph().code(targets_[target_]));
            }
            if (target_ < targets_.size()) return;
            target_ = 0;
            ++source_;
        }
    }

    const Closure& closure_;
    uint64_t version_;
    std::vector<uint32_t> sources_, targets_;
    size_t source_ = 0, target_ = 0;
    uint64_t group_ = 0;
};

std::vector<uint32_t> source_of(const Closure& closure, int64_t code) {
    uint32_t node = closure.graph().find(code, false);
    return node == NIL ? std::vector<uint32_t>{} : std::vector<uint32_t>{node};
}

// For each request that finds something: its number, and the nodes it finds.
nb::tuple targets_of_many(const Closure& closure, const Codes& from) {
    Array<int64_t> numbers, to;
    {
        nb::gil_scoped_release release;
        std::vector<uint32_t> nodes;
        for (size_t i = 0; i < from.size(); ++i) {
            uint32_t node = closure.graph().find(from.data()[i], false);
            if (node == NIL) continue;
            closure.targets(node, nodes);
            for (uint32_t each : nodes) {
                numbers.push(static_cast<int64_t>(i));
                to.push(closure.graph().code(each));
            }
        }
    }
    size_t n = to.size();
    return nb::make_tuple(to_numpy(std::move(numbers), n), to_numpy(std::move(to), n));
}

nb::object reaches_many(const Closure& closure, const Codes& from, const Codes& to) {
    if (from.size() != to.size()) throw std::invalid_argument("the columns of the requests differ in length");
    Array<int64_t> numbers;
    {
        nb::gil_scoped_release release;
        for (size_t i = 0; i < from.size(); ++i) {
            if (closure.reaches(from.data()[i], to.data()[i])) numbers.push(static_cast<int64_t>(i));
        }
    }
    size_t n = numbers.size();
    return to_numpy(std::move(numbers), n);
}

nb::object targets_of(const Closure& closure, int64_t from, size_t most) {
    if (closure.degree(from) > most) return nb::none();
    nb::list listed;
    std::vector<uint32_t> nodes;
    for (uint32_t node : source_of(closure, from)) closure.targets(node, nodes);
    for (uint32_t node : nodes) listed.append(closure.graph().code(node));
    return listed;
}

nb::tuple changed(const Closure& closure) {
    ClosureDelta delta;
    {
        nb::gil_scoped_release release;
        closure.changed(delta);
    }
    size_t n = delta.from.size();
    return nb::make_tuple(to_numpy(std::move(delta.from), n), to_numpy(std::move(delta.to), n),
                          to_numpy(std::move(delta.weights), n));
}

nb::object codes_of(const Closure& closure) {
    const Graph& graph = closure.graph();
    Array<int64_t> codes;
    for (uint32_t node = 0; node < graph.capacity(); ++node) {
        if (graph.alive(node)) codes.push(graph.code(node));
    }
    size_t n = codes.size();
    return to_numpy(std::move(codes), n);
}

void change(Closure& closure, const Codes& from, const Codes& to, const Codes& weights) {
    if (from.size() != to.size() || from.size() != weights.size()) {
        throw std::invalid_argument("the columns of the edges differ in length");
    }
    nb::gil_scoped_release release;
    closure.change(from.data(), to.data(), weights.data(), from.size());
}

}  // namespace

void bind_closure(nb::module_& m) {
    static PyObject* cycle = PyErr_NewException("ivme._kernel.Cycle", PyExc_Exception, nullptr);
    if (!cycle) throw nb::python_error();
    m.attr("Cycle") = nb::handle(cycle);
    nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
        try {
            std::rethrow_exception(thrown);
        } catch (const Cycle& closed) {
            nb::tuple arguments = nb::make_tuple(closed.codes);
            PyErr_SetObject(cycle, arguments.ptr());
        }
    });
    nb::class_<ClosureCursor>(m, "ClosureCursor").def("next_block", &ClosureCursor::next, nb::arg("max_rows") = 8192);
    nb::class_<Closure>(m, "Closure")
        .def(nb::new_([](const std::string& kind, uint64_t seed) { return make_closure(kind, seed); }), nb::arg("kind"),
             nb::arg("seed"))
        .def("change", &change)
        .def("commit", &Closure::commit)
        .def("roll_back", &Closure::roll_back)
        .def("follow", &Closure::follow)
        .def("changed", &changed)
        .def("reaches", &Closure::reaches)
        .def("reaches_many", &reaches_many)
        .def("targets", &targets_of)
        .def("targets_many", &targets_of_many)
        .def("path", &Closure::path)
        .def("codes", &codes_of)
        .def(
            "open_from",
            [](const Closure& closure, int64_t code) { return new ClosureCursor(closure, source_of(closure, code)); },
            nb::keep_alive<0, 1>())
        .def(
            "open", [](const Closure& closure) { return new ClosureCursor(closure, closure.sources()); },
            nb::keep_alive<0, 1>())
        .def("check", &Closure::check)
        .def("memory_bytes", &Closure::bytes)
        .def_prop_ro("nodes", [](const Closure& closure) { return closure.sources().size(); })
        .def_prop_ro("edges", [](const Closure& closure) { return closure.graph().edges(); })
        .def_prop_ro("components", &Closure::components)
        .def_prop_ro("pairs", &Closure::pairs)
        .def_prop_ro("version", &Closure::version)
        .def_ro("operations", &Closure::operations);
}

}  // namespace ivme
