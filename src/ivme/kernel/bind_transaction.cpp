// What makes a change of the state one thing for Python: a lock that knows what is under way, and a row in one call.
//
// An asynchronous exception (Ctrl-C) may end Python code between any two instructions, but not a native call. So the
// lock is taken and let go by native calls, which first end whatever such an exception left half done.
#include "bind.hpp"

namespace ivme {

namespace {

// A lock that its thread may take again. `pending` is the change that is under way: the thread that takes the lock
// first, or lets go of it last, calls its `settle` if it is still there. A limit of the thread's memory ends with it.
class StateLock {
public:
    StateLock() {
        nb::object lock = nb::module_::import_("threading").attr("RLock")();
        acquire_ = lock.attr("acquire");
        release_ = lock.attr("release");
    }

    bool acquire(bool blocking, double timeout) {
        if (!nb::cast<bool>(acquire_(blocking, timeout))) return false;
        taken();
        return true;
    }
    void enter() {
        call(acquire_);
        taken();
    }

    void release() {
        if (depth_ == 1 && !pending.is_none()) settle_or_let_go();
        call(release_);  // raises if another thread has it
        if (!--depth_) memory_room = -1;
    }

    nb::object pending = nb::none();

private:
    static void call(const nb::object& function) {
        PyObject* result = PyObject_CallNoArgs(function.ptr());
        if (!result) throw nb::python_error();
        Py_DECREF(result);
    }

    void taken() {
        if (++depth_ == 1 && !pending.is_none()) settle_or_let_go();
    }

    void settle_or_let_go() {
        try {
            nb::object settle = pending.attr("settle");
            settle();
        } catch (...) {
            call(release_);
            --depth_;
            throw;
        }
    }

    nb::object acquire_, release_;
    size_t depth_ = 0;
};

struct RowRun {
    size_t trigger;
    bool whole;  // the trigger takes the codes as they are
    std::vector<unsigned> places;
};

// The triggers that one row goes through, and which of its codes each wants.
class RowRuns {
public:
    RowRuns(Kernel& kernel, const nb::list& runs) : kernel_(kernel) {
        for (nb::handle run : runs) {
            auto [trigger, places] = nb::cast<std::pair<size_t, nb::object>>(run);
            bool whole = places.is_none();
            runs_.push_back(
                {trigger, whole, whole ? std::vector<unsigned>() : nb::cast<std::vector<unsigned>>(places)});
        }
    }

    // All triggers or none, and none if a stored sum would not fit its type. The GIL stays, as the work is below a
    // switch.
    void run(nb::handle codes, int64_t weight) {
        if (!PyTuple_Check(codes.ptr())) throw nb::type_error("the codes of a row are a tuple");
        auto n = static_cast<size_t>(PyTuple_GET_SIZE(codes.ptr()));
        row_.resize(n);
        for (size_t i = 0; i < n; ++i) {
            row_[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(codes.ptr(), static_cast<Py_ssize_t>(i)));
            if (row_[i] == -1 && PyErr_Occurred()) throw nb::python_error();
        }
        auto lock = kernel_.try_writing();
        if (!lock.owns_lock()) {
            nb::gil_scoped_release release;
            lock = kernel_.writing();
        }
        auto strings = kernel_.hold_dictionaries();
        inputs_[0].n = 1;
        inputs_[0].weights = &weight;
        kernel_.undoably([&] {
            for (const RowRun& run : runs_) {
                Trigger& trigger = kernel_.trigger(run.trigger);
                pick(run, trigger);
                kernel_.machine.run(trigger, inputs_, kernel_.log());
            }
            kernel_.misfits([](size_t, const int64_t*) { throw Overflow(); });
        });
        for (const RowRun& run : runs_) kernel_.trim(kernel_.trigger(run.trigger));
    }

private:
    void pick(const RowRun& run, const Trigger& trigger) {
        auto& columns = inputs_[0].columns;
        columns.clear();
        for (size_t i = 0; run.whole && i < row_.size(); ++i) columns.push_back(&row_[i]);
        for (unsigned place : run.places) {
            if (place >= row_.size()) throw std::invalid_argument("a row lacks codes");
            columns.push_back(&row_[place]);
        }
        if (trigger.input_widths.size() != 1 || columns.size() < trigger.input_widths[0]) {
            throw std::invalid_argument("an input lacks columns");
        }
    }

    Kernel& kernel_;
    std::vector<RowRun> runs_;
    std::vector<int64_t> row_;
    std::vector<Input> inputs_{1};
};

}  // namespace

void bind_transaction(nb::module_& m) {
    nb::class_<StateLock>(m, "StateLock")
        .def(nb::init<>())
        .def_rw("pending", &StateLock::pending, nb::arg("pending").none())
        .def("acquire", &StateLock::acquire, nb::arg("blocking") = true, nb::arg("timeout") = -1.0)
        .def("release", &StateLock::release)
        .def("__enter__", &StateLock::enter)
        .def(
            "__exit__", [](StateLock& lock, nb::handle, nb::handle, nb::handle) { lock.release(); }, nb::arg().none(),
            nb::arg().none(), nb::arg().none());
    nb::class_<RowRuns>(m, "RowRuns")
        .def(nb::init<Kernel&, const nb::list&>(), nb::keep_alive<1, 2>())
        .def("run", &RowRuns::run);
}

}  // namespace ivme
