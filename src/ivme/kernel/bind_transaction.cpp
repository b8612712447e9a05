// What makes a change of the state one thing for Python: a lock that knows what is under way, and rows in one call.
#include <nanobind/stl/array.h>
#include <nanobind/stl/vector.h>

#include "row_gate.hpp"

namespace ivme {

void bind_transaction(nb::module_& m) {
    m.def("bytes_copied", [] { return bytes_copied; });
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
        .def("take_arrow", &RowPath::take_arrow, nb::arg("columns"), nb::arg("key"), nb::arg("prepare").none(),
             nb::arg("loose"), nb::arg("unread"))
        .def("encode", &RowPath::encode)
        .def("run", nb::overload_cast<nb::handle, int64_t>(&RowPath::run))
        .def("apply", &RowPath::apply)
        .def("apply_all", &RowPath::apply_all)
        .def("set_balance", &RowPath::set_balance)
        .def("set_log", &RowPath::set_log)
        .def("set_chain", &RowPath::set_chain)
        .def("set_light", &RowPath::set_light);
    using Value = std::tuple<char, unsigned, unsigned, unsigned, int64_t, int64_t>;
    nb::class_<ViewChain>(m, "ViewChain")
        .def(nb::init<Kernel&>(), nb::keep_alive<1, 2>())
        .def("add_view",
             [](ViewChain& chain, unsigned width, std::vector<unsigned> places, bool hides, bool is_union,
                std::vector<unsigned> numbers) {
                 ChainView view;
                 view.width = width;
                 view.places = std::move(places);
                 view.hides = hides;
                 view.is_union = is_union;
                 view.numbers = std::move(numbers);
                 chain.views.push_back(std::move(view));
                 return chain.views.size() - 1;
             })
        .def("set_groups",
             [](ViewChain& chain, size_t number, const nb::object& kept, size_t reader,
                const std::vector<Value>& values, std::vector<int64_t> nothing) {
                 ChainView& view = chain.views.at(number);
                 view.kept = &nb::cast<KeptRows&>(kept);
                 chain.held.append(kept);
                 view.reader = reader;
                 for (const auto& [kind, place, words, present, most, factor] : values) {
                     view.values.push_back({kind, place, words, present, most, factor});
                 }
                 view.nothing = std::move(nothing);
             })
        .def("set_teller", &ViewChain::set_teller)
        .def("set_told", [](ViewChain& chain, size_t number) { chain.views.at(number).is_told = true; })
        .def("set_distinct",
             [](ViewChain& chain, size_t number, size_t reader) {
                 chain.views.at(number).is_distinct = true;
                 chain.views[number].reader = reader;
             })
        .def(
            "set_readers",
            [](ViewChain& chain, size_t number, const nb::object& path, size_t relation, nb::object prepare) {
                auto& readers = nb::cast<RowPath&>(path);
                readers.join(chain, relation, std::move(prepare));
                chain.views.at(number).readers = &readers;
                chain.balances.insert(chain.balances.end(), readers.balances().begin(), readers.balances().end());
                chain.held.append(path);
            },
            nb::arg("view"), nb::arg("path"), nb::arg("relation"), nb::arg("prepare").none())
        .def("set_emits",
             [](ViewChain& chain, size_t trigger, const std::vector<size_t>& views) {
                 for (size_t view : views) {
                     if (view >= chain.views.size()) throw std::out_of_range("there is no such view in the chain");
                 }
                 chain.emits[trigger] = views;
             })
        .def(
            "add_branch",
            [](ViewChain& chain, size_t relation, size_t view, const nb::object& program, const nb::object& prepare,
               std::vector<unsigned> columns, int test, int factor) {
                ChainExpressions found;
                if (!program.is_none()) found = {&nb::cast<Expressions&>(program), prepare.ptr()};
                chain.held.append(nb::make_tuple(program, prepare));
                if (chain.views.at(view).width != columns.size()) throw std::invalid_argument("another width");
                chain.branches[relation].push_back({view, found, std::move(columns), test, factor});
            },
            nb::arg("relation"), nb::arg("view"), nb::arg("program").none(), nb::arg("prepare").none(),
            nb::arg("columns"), nb::arg("test"), nb::arg("factor"));
    nb::class_<LogEnd>(m, "LogEnd")
        .def(nb::init<std::string, nb::dict, nb::object, nb::set>())
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
        .def(nb::init<Kernel&, std::vector<size_t>, std::vector<size_t>, std::vector<size_t>>(), nb::keep_alive<1, 2>())
        .def("set_limits", &Balance::set_limits)
        .def("holds",
             [](const Balance& balance) {
                 auto lock = read_lock(balance.kernel());
                 return balance.holds();
             })
        .def_ro("rows", &Balance::rows);
    nb::class_<EncodedRows>(m, "EncodedRows")
        .def("__len__", [](const EncodedRows& rows) { return rows.n; })
        .def("columns", &EncodedRows::columns);
    nb::class_<RowsAhead>(m, "RowsAhead")
        .def("take", &RowsAhead::take)
        .def("rows",
             [](RowsAhead& ahead) {
                 ahead.stop();
                 nb::list rows;
                 for (const RowsAhead::Part& part : ahead.parts) rows.append(part.encoded);
                 return rows;
             })
        .def("data", &RowsAhead::data);
    nb::class_<RowGate>(m, "RowGate")
        .def(nb::init<const nb::object&, nb::dict, nb::object, size_t>())
        .def_rw("is_open", &RowGate::is_open)
        .def_rw("rows_left", &RowGate::rows_left)
        .def("set_path", &RowGate::set_path)
        .def("forget", &RowGate::forget)
        .def("encode", &RowGate::encode, nb::arg("table").none(), nb::arg("capsules"), nb::arg("weight"))
        .def("encode_ahead", &RowGate::encode_ahead)
        .def("apply_encoded", &RowGate::apply_encoded, nb::arg("parts"), nb::arg("record") = nb::none())
        .def("apply_rows", &RowGate::apply_rows)
        .def("apply", &RowGate::apply, nb::arg("table").none(), nb::arg("rows"), nb::arg("weight"));
}

}  // namespace ivme
