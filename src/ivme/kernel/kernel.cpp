// The module ivme._kernel. Writers hold the lock alone; the GIL is free while a batch runs.
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <cstdlib>

#include "bind.hpp"
#include "shown_payloads.hpp"

namespace ivme {

namespace {

void check_inputs(const Trigger& trigger, const std::vector<Input>& inputs) {
    if (inputs.size() != trigger.input_widths.size()) throw std::invalid_argument("the number of inputs does not fit");
    for (size_t i = 0; i < inputs.size(); ++i) {
        if (inputs[i].columns.size() < trigger.input_widths[i]) throw std::invalid_argument("an input lacks columns");
    }
}

struct Emitted {
    Layout layout;
    std::vector<Array<int64_t>> columns;
    Array<int64_t> payloads;
    size_t n;
    ShownFloats floats;
};

std::vector<Emitted> take_emitted(const Trigger& trigger) {
    std::vector<Emitted> all;
    for (unsigned number : trigger.emits) {
        const Delta& delta = trigger.registers[number];
        Emitted one{delta.layout,
                    std::vector<Array<int64_t>>(delta.columns.size()),
                    {},
                    delta.n,
                    ShownFloats(delta.layout, delta.payloads.data(), delta.n, false)};
        for (size_t c = 0; c < delta.columns.size(); ++c) {
            one.columns[c].resize(delta.n);
            std::copy_n(delta.columns[c].data(), delta.n, one.columns[c].data());
        }
        one.payloads.resize(delta.n * delta.layout.words);
        std::copy_n(delta.payloads.data(), one.payloads.size(), one.payloads.data());
        all.push_back(std::move(one));
    }
    return all;
}

nb::list show(std::vector<Emitted> emitted) {
    nb::list deltas;
    for (auto& delta : emitted) {
        nb::list columns;
        for (auto& column : delta.columns) columns.append(to_numpy(std::move(column), delta.n));
        nb::tuple payloads = payload_arrays(delta.layout, std::move(delta.payloads), delta.n, std::move(delta.floats));
        deltas.append(nb::make_tuple(columns, payloads[0], payloads[1]));
    }
    return deltas;
}

// So few rows take less time than the GIL takes to come back.
constexpr size_t FEW_ROWS = 64;

Input input_of(const std::vector<Codes>& columns, const Codes& weights) {
    Input input{weights.size(), {}, weights.data()};
    for (const Codes& column : columns) {
        if (column.size() != weights.size()) throw std::invalid_argument("columns and weights differ in length");
        input.columns.push_back(column.data());
    }
    return input;
}

void check_jobs(const std::vector<Job>& jobs) {
    for (const Job& job : jobs) check_inputs(*job.trigger, job.inputs);
}

using GivenInputs = std::vector<std::pair<std::vector<Codes>, Codes>>;

// Triggers, each with its inputs; what each emits. If one is refused, `failed_run` says which.
nb::list run_many(Kernel& kernel, const std::vector<std::pair<size_t, GivenInputs>>& runs) {
    std::vector<std::vector<Input>> inputs;
    size_t rows = 0;
    for (const auto& [id, given] : runs) {
        inputs.emplace_back();
        for (const auto& [columns, weights] : given) {
            inputs.back().push_back(input_of(columns, weights));
            rows += weights.size();
        }
    }
    for (const auto& [id, given] : runs) {
        auto is_same = [id = id](const auto& other) { return other.first == id; };
        if (std::count_if(runs.begin(), runs.end(), is_same) > 1) throw std::invalid_argument("a trigger runs twice");
    }
    std::vector<std::vector<Emitted>> emitted(runs.size());
    {
        std::optional<nb::gil_scoped_release> release;
        if (rows > FEW_ROWS) release.emplace();
        auto lock = release ? kernel.writing() : write_lock(kernel);
        std::vector<Job> jobs;
        for (size_t i = 0; i < runs.size(); ++i) jobs.push_back({&kernel.trigger(runs[i].first), std::move(inputs[i])});
        check_jobs(jobs);
        auto strings = kernel.hold_dictionaries();
        kernel.run(jobs, [&] {
            for (size_t i = 0; i < jobs.size(); ++i) emitted[i] = take_emitted(*jobs[i].trigger);
        });
        for (const Job& job : jobs) kernel.trim(*job.trigger);
    }
    nb::list shown;
    for (auto& each : emitted) shown.append(show(std::move(each)));
    return shown;
}

nb::object run(Kernel& kernel, size_t id, const GivenInputs& given) { return run_many(kernel, {{id, given}})[0]; }

// A batch as a transaction of its own: each trigger with its one input. Few rows take less time than letting the GIL
// go.
void run_all(Kernel& kernel, const std::vector<std::tuple<size_t, std::vector<Codes>, Codes>>& runs) {
    constexpr size_t MANY = 16;
    std::vector<std::vector<Input>> inputs;
    size_t rows = 0;
    for (const auto& [id, columns, weights] : runs) {
        inputs.push_back({input_of(columns, weights)});
        rows += weights.size();
    }
    auto work = [&] {
        auto strings = kernel.hold_dictionaries();
        std::vector<Job> jobs;
        for (size_t i = 0; i < runs.size(); ++i) {
            jobs.push_back({&kernel.trigger(std::get<0>(runs[i])), std::move(inputs[i])});
        }
        check_jobs(jobs);
        kernel.run(jobs, [&] { kernel.misfits([](size_t, const int64_t*) { throw Overflow(); }); });
        for (const Job& job : jobs) kernel.trim(*job.trigger);
    };
    if (rows <= MANY) {
        auto lock = kernel.try_writing();
        if (lock.owns_lock()) return work();
    }
    nb::gil_scoped_release release;
    auto lock = kernel.writing();
    work();
}

// The short path of a single row: no numpy, no allocation, and the GIL stays, as the work is below a switch.
nb::object run_one(Kernel& kernel, size_t id, nb::handle codes, int64_t weight) {
    if (!PyTuple_Check(codes.ptr())) throw nb::type_error("the codes of a row are a tuple");
    auto n = static_cast<size_t>(PyTuple_GET_SIZE(codes.ptr()));
    auto lock = write_lock(kernel);
    FewRows few;
    Trigger& trigger = kernel.trigger(id);
    static thread_local std::vector<Input> inputs(1);
    static thread_local std::vector<int64_t> row;
    row.resize(n);
    inputs[0].n = 1;
    inputs[0].weights = &weight;
    inputs[0].columns.clear();
    for (size_t i = 0; i < n; ++i) {
        row[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(codes.ptr(), static_cast<Py_ssize_t>(i)));
        if (row[i] == -1 && PyErr_Occurred()) throw nb::python_error();
        inputs[0].columns.push_back(&row[i]);
    }
    check_inputs(trigger, inputs);
    auto strings = kernel.hold_dictionaries();
    std::vector<Emitted> emitted;
    bool emits = !trigger.emits.empty();
    kernel.undoably([&] {
        kernel.machine.run(trigger, inputs, kernel.log());
        if (emits) emitted = take_emitted(trigger);
    });
    kernel.trim(trigger);
    return emits ? nb::object(show(std::move(emitted))) : nb::none();
}

// A look at something, for which the GIL need not go.
template <class Work>
auto look(const Kernel& kernel, Work work) {
    auto lock = read_lock(kernel);
    return work();
}

// Ends a transaction, also one that another thread left behind.
template <class Work>
void end(Kernel& kernel, Work work) {
    auto attempt = [&](auto patience) { return kernel.try_ending(patience); };
    auto lock = lock_with_python(attempt, [&] { return kernel.ending(); });
    auto work_on_strings = [&] {
        auto strings = kernel.hold_dictionaries();
        work();
    };
    if (kernel.rows_changed() <= FEW_ROWS * 16) return work_on_strings();
    lock.unlock();  // not to be held while waiting for the GIL
    nb::gil_scoped_release release;
    lock = kernel.ending();
    work_on_strings();
    lock.unlock();
}

nb::tuple codes_at(const Map& map, const int64_t* row) {
    nb::list codes;
    for (unsigned i = 0; i < map.arity(); ++i) codes.append(row[i]);
    return nb::tuple(codes);
}

// The maps and codes of what the open transaction left beyond its limits. None, mostly: it is asked for every batch.
nb::list misfits(Kernel& kernel) {
    nb::list found;
    auto lock = write_lock(kernel);
    kernel.misfits(
        [&](size_t map, const int64_t* row) { found.append(nb::make_tuple(map, codes_at(kernel.map(map), row))); });
    return found;
}

std::vector<Dictionary*> dictionaries_of(const nb::list& given) {
    std::vector<Dictionary*> dictionaries;
    for (nb::handle each : given) dictionaries.push_back(dictionary_of(each));
    return dictionaries;
}

void set_broken_check(nb::module_& m) {
    static PyObject* type = PyErr_NewException("ivme._kernel.BrokenCheck", PyExc_Exception, nullptr);
    if (!type) throw nb::python_error();
    m.attr("BrokenCheck") = nb::handle(type);
    nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
        try {
            std::rethrow_exception(thrown);
        } catch (const BrokenCheck& broken) {
            nb::list codes;
            for (int64_t code : broken.codes) codes.append(code);
            nb::tuple arguments = nb::make_tuple(broken.what(), nb::tuple(codes));
            PyErr_SetObject(type, arguments.ptr());
        }
    });
}

// The limit that the thread's room for memory stands for, which the message names.
thread_local int64_t memory_limit = 0;

void set_memory_limit(nb::module_& m) {
    m.def(
        "limit_memory",
        [](std::optional<int64_t> room, int64_t limit) {
            memory_room = room ? std::max<int64_t>(*room, 0) : -1;
            memory_limit = limit;
        },
        nb::arg("room").none(), nb::arg("limit"));
    nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
        try {
            std::rethrow_exception(thrown);
        } catch (const MemoryLimit&) {
            nb::object type = nb::module_::import_("ivme.errors").attr("MemoryLimitError");
            nb::object error = type.attr("beyond")(memory_limit);
            PyErr_SetObject(type.ptr(), error.ptr());
        }
    });
}

}  // namespace

NB_MODULE(_kernel, m) {
    m.doc() = "The compiled kernel: indexed maps from tuples of codes to payloads, and the programs that keep them.";
    m.attr("NULL") = NULL_CODE;
    // A thread that outlives the interpreter may hold a database, which is no leak of ours.
    nb::set_leak_warnings(std::getenv("IVME_LEAK_WARNINGS") != nullptr);
    // nanobind keeps what these objects make.
    // NOLINTBEGIN(bugprone-unused-raii, bugprone-throw-keyword-missing)
    nb::exception<Overflow>(m, "PayloadOverflow", PyExc_OverflowError);
    nb::exception<Capacity>(m, "CapacityError", PyExc_MemoryError);
    nb::exception<Stale>(m, "StaleCursor", PyExc_RuntimeError);
    // NOLINTEND(bugprone-unused-raii, bugprone-throw-keyword-missing)
    set_broken_check(m);
    set_memory_limit(m);
    m.def("cut_batches_into", [](size_t rows) { return rows_of_piece.exchange(rows); });
    m.def("limit_allocations", [](int64_t budget) { allocation_budget = budget; });
    bind_closure(m);
    bind_dictionary(m);
    bind_expression(m);
    bind_arrow(m);
    nb::class_<Kernel> kernel(m, "Kernel");
    kernel
        .def("__init__",
             [](Kernel* made, uint64_t seed) {
                 new (made) Kernel(seed);
                 made->machine.poll = [] {
                     nb::gil_scoped_acquire acquire;
                     if (PyErr_CheckSignals()) throw nb::python_error();
                 };
             })
        .def(
            "add_map",
            [](Kernel& k, unsigned arity, const std::vector<std::string>& slots, const std::vector<unsigned>& key) {
                return exclusively(k, [&] { return k.add_map(arity, parse_slots(slots), key); });
            },
            nb::arg("arity"), nb::arg("slots"), nb::arg("key") = std::vector<unsigned>())
        .def("add_index",
             [](Kernel& k, size_t map, std::vector<unsigned> key, std::vector<unsigned> values) {
                 exclusively(k, [&] { k.map(map).add_index(key, values); });
             })
        .def(
            "add_sorted",
            [](Kernel& k, size_t map, std::vector<unsigned> key, unsigned value, nb::object order, bool counted) {
                const Dictionary* dictionary = order.is_none() ? nullptr : dictionary_of(order);
                exclusively(k, [&] {
                    k.map(map).add_sorted(std::move(key), value, dictionary, counted);
                    if (dictionary) k.order_by(dictionary);
                });
            },
            nb::arg("map"), nb::arg("key"), nb::arg("value"), nb::arg("order") = nb::none(), nb::arg("counted") = false,
            nb::keep_alive<1, 5>())
        .def("drop_map", [](Kernel& k, size_t map) { exclusively(k, [&] { k.drop_map(map); }); })
        .def("clear_map", [](Kernel& k, size_t map) { exclusively(k, [&] { k.clear_map(map); }); })
        .def("load_map",
             [](Kernel& k, size_t map, const Codes& records) {
                 exclusively(k, [&] { k.load_map(map, records.data(), records.size()); });
             })
        .def("size", [](Kernel& k, size_t map) { return look(k, [&] { return k.map(map).size(); }); })
        .def("add_trigger",
             [](Kernel& k, unsigned registers, const std::vector<std::string>& slots, const nb::list& steps) {
                 auto lock = write_lock(k);
                 return k.add_trigger(parse_trigger(k, registers, slots, steps));
             })
        .def("drop_trigger", [](Kernel& k, size_t id) { exclusively(k, [&] { k.drop_trigger(id); }); })
        .def(
            "add_reader",
            [](Kernel& k, unsigned inputs, unsigned variables, std::vector<unsigned> outputs, const nb::list& loops,
               const nb::list& factors, const nb::list& extremes, const nb::list& guards, bool exact) {
                auto lock = write_lock(k);
                auto reader = parse_reader(k, inputs, variables, std::move(outputs), loops, factors, extremes, guards);
                auto plan = single(k, std::move(reader));
                plan->exact = exact;
                return k.add_reader(std::move(plan));
            },
            nb::arg("inputs"), nb::arg("variables"), nb::arg("outputs"), nb::arg("loops"), nb::arg("factors"),
            nb::arg("extremes"), nb::arg("guards") = nb::list(), nb::arg("exact") = false)
        .def(
            "add_union",
            [](Kernel& k, unsigned inputs, unsigned outputs, std::vector<unsigned> asked, const nb::list& branches,
               bool disjoint, bool exact, bool answered, const nb::list& pieces) {
                auto lock = write_lock(k);
                auto plan = parse_union(k, inputs, outputs, std::move(asked), branches, disjoint, answered, pieces);
                plan->exact = exact;
                return k.add_reader(std::move(plan));
            },
            nb::arg("inputs"), nb::arg("outputs"), nb::arg("asked"), nb::arg("branches"), nb::arg("disjoint"),
            nb::arg("exact"), nb::arg("answered") = false, nb::arg("pieces") = nb::list())
        .def("drop_reader", [](Kernel& k, size_t id) { exclusively(k, [&] { k.drop_reader(id); }); })
        .def("run", &run)
        .def("run_many", &run_many)
        .def_prop_rw(
            "threads", [](Kernel& k) { return k.team().threads; },
            [](Kernel& k, unsigned threads) { exclusively(k, [&] { k.team().threads = threads; }); })
        .def_prop_ro("loads_taken", [](Kernel& k) { return look(k, [&] { return k.machine.loads_taken; }); })
        .def_prop_ro("batches_shared", [](Kernel& k) { return look(k, [&] { return k.team().batches_shared; }); })
        .def_prop_ro("failed_run", [](Kernel& k) { return look(k, [&] { return k.team().failed_run; }); })
        .def("run_one", &run_one)
        .def("run_all", &run_all)
        .def("begin",
             [](Kernel& k) {
                 auto lock = write_lock(k);
                 k.begin();
             })
        .def("commit", [](Kernel& k) { end(k, [&] { k.commit(); }); })
        .def("roll_back", [](Kernel& k) { end(k, [&] { k.roll_back(); }); })
        .def("waits", &Kernel::waits)
        .def("alive", [](Kernel& k) { return look(k, [&] { return k.alive(); }); })
        .def("limit",
             [](Kernel& k, size_t map, const std::vector<std::string>& names) {
                 std::vector<Limit> limits;
                 for (const auto& name : names) limits.push_back(parse_limit(name));
                 nb::list found;
                 auto lock = write_lock(k);
                 k.map(map).limit(limits);
                 k.map(map).misfits([&](const int64_t* row) { found.append(codes_at(k.map(map), row)); });
                 return found;
             })
        .def("misfits", &misfits)
        .def("is_sweep_due",
             [](Kernel& k, const nb::list& dictionaries, uint64_t least) {
                 std::vector<Dictionary*> given = dictionaries_of(dictionaries);
                 return look(k, [&] { return k.is_sweep_due(given, least); });
             })
        .def("sweep_codes",
             [](Kernel& k, const nb::list& dictionaries, const std::vector<Codes>& held) {
                 std::vector<Dictionary*> given = dictionaries_of(dictionaries);
                 std::vector<std::pair<const int64_t*, size_t>> words;
                 for (const Codes& each : held) words.emplace_back(each.data(), each.size());
                 exclusively(k, [&] { k.sweep_codes(given, words); });
             })
        .def("memory_bytes", [](Kernel& k) { return shared(k, [&] { return k.bytes(); }); })
        .def("release_buffers", [](Kernel& k) { exclusively(k, [&] { k.release_buffers(); }); })
        .def_prop_ro("operations", [](Kernel& k) {
            return look(k, [&] { return k.machine.operations + k.read_operations.load(); });
        });
    bind_heap(kernel);
    bind_partition(kernel);
    bind_reading(m, kernel);
    bind_following(m);
    bind_ordered(m);
    bind_transaction(m);
}

}  // namespace ivme
