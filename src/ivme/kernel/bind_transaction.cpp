// What makes a change of the state one thing for Python: a lock that knows what is under way, and rows in one call.
#include <nanobind/stl/array.h>
#include <nanobind/stl/vector.h>

#include "row_gate.hpp"

namespace ivme {

void bind_transaction(nb::module_& m) {
    nb::class_<StateLock>(m, "StateLock")
        .def(nb::init<>())
        .def_rw("pending", &StateLock::pending, nb::arg("pending").none())
        .def("acquire", &StateLock::acquire, nb::arg("blocking") = true, nb::arg("timeout") = -1.0)
        .def("release", &StateLock::release)
        .def("__enter__", &StateLock::enter)
        .def(
            "__exit__", [](StateLock& lock, nb::handle, nb::handle, nb::handle) { lock.release(); }, nb::arg().none(),
            nb::arg().none(), nb::arg().none())
        .def_prop_ro(
            "shared", [](StateLock& lock) { return SharedSide{lock}; }, nb::keep_alive<0, 1>())
        .def("waits", &StateLock::waits);
    nb::class_<SharedSide>(m, "SharedSide")
        .def(
            "acquire",
            [](SharedSide& side, bool blocking, double timeout) { return side.lock.acquire_shared(blocking, timeout); },
            nb::arg("blocking") = true, nb::arg("timeout") = -1.0)
        .def("release", [](SharedSide& side) { side.lock.release_shared(); })
        .def("__enter__", [](SharedSide& side) { side.lock.enter_shared(); })
        .def(
            "__exit__", [](SharedSide& side, nb::handle, nb::handle, nb::handle) { side.lock.release_shared(); },
            nb::arg().none(), nb::arg().none(), nb::arg().none());
    nb::class_<RowEncoder>(m, "RowEncoder")
        .def(nb::init<const nb::list&>())
        .def("encode", [](RowEncoder& encoder, const nb::list& rows) -> nb::object {
            Array<int64_t> words;
            auto n = static_cast<size_t>(PyList_GET_SIZE(rows.ptr()));
            if (!encoder.encode_rows(rows, words)) return nb::none();
            auto* owned = new Array<int64_t>(std::move(words));
            nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<Array<int64_t>*>(p); });
            static int64_t nothing = 0;
            nb::list columns;
            for (size_t i = 0; i < encoder.arity(); ++i) {
                int64_t* data = owned->data() ? owned->data() + i * n : &nothing;
                columns.append(nb::cast(nb::ndarray<nb::numpy, int64_t>(data, {n}, owner)));
            }
            return columns;
        });
    nb::class_<RowPath>(m, "RowPath")
        .def(nb::init<Kernel&, const nb::list&, const nb::object&, nb::object, const nb::list&>(), nb::arg("kernel"),
             nb::arg("columns"), nb::arg("expressions").none(), nb::arg("compute").none(), nb::arg("runs"),
             nb::keep_alive<1, 2>())
        .def("take_arrow", &RowPath::take_arrow, nb::arg("columns"), nb::arg("key"), nb::arg("prepare").none())
        .def("encode", &RowPath::encode)
        .def("run", nb::overload_cast<nb::handle, int64_t>(&RowPath::run))
        .def("apply", &RowPath::apply)
        .def("apply_all", &RowPath::apply_all)
        .def("set_balances", &RowPath::set_balances)
        .def("set_log", &RowPath::set_log)
        .def("set_light", &RowPath::set_light);
    nb::class_<LogEnd>(m, "LogEnd")
        .def(nb::init<nb::dict, nb::object, nb::set>())
        .def_rw("descriptor", &LogEnd::descriptor)
        .def_rw("first", &LogEnd::first)
        .def_rw("place", &LogEnd::place)
        .def_rw("written", &LogEnd::written)
        .def_rw("durable", &LogEnd::durable)
        .def_rw("older", &LogEnd::older)
        .def_rw("limit", &LogEnd::limit)
        .def_rw("usable", &LogEnd::usable)
        .def_rw("unfinished", &LogEnd::unfinished)
        .def_rw("awake", &LogEnd::awake)
        .def_rw("waits", &LogEnd::waits)
        .def_rw("told", &LogEnd::told)
        .def_ro("taken", &LogEnd::taken)
        .def_rw("wake", &LogEnd::wake, nb::arg("wake").none());
    nb::class_<Balance>(m, "Balance")
        .def(nb::init<Kernel&, std::vector<size_t>, std::vector<size_t>>(), nb::keep_alive<1, 2>())
        .def("set_limits", &Balance::set_limits)
        .def_ro("rows", &Balance::rows);
    nb::class_<EncodedRows>(m, "EncodedRows")
        .def("__len__", [](const EncodedRows& rows) { return rows.n; })
        .def("columns", &EncodedRows::columns);
    nb::class_<RowGate>(m, "RowGate")
        .def(nb::init<const nb::object&, nb::dict, nb::object, size_t>())
        .def_rw("is_open", &RowGate::is_open)
        .def_rw("rows_left", &RowGate::rows_left)
        .def("set_path", &RowGate::set_path)
        .def("forget", &RowGate::forget)
        .def("encode", &RowGate::encode, nb::arg("table").none(), nb::arg("capsules"))
        .def("apply_encoded", &RowGate::apply_encoded, nb::arg("parts"), nb::arg("record") = nb::none())
        .def("apply_rows", &RowGate::apply_rows)
        .def("apply", &RowGate::apply, nb::arg("table").none(), nb::arg("rows"), nb::arg("weight"));
}

}  // namespace ivme
