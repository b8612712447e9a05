// What makes a change of the state one thing for Python: a lock that knows what is under way, and a row in one call.
//
// An asynchronous exception (Ctrl-C) may end Python code between any two instructions, but not a native call. So the
// lock is taken and let go by native calls, which first end whatever such an exception left half done.
#include <nanobind/stl/array.h>

#include "bound_expressions.hpp"
#include "row_encoder.hpp"

namespace ivme {

namespace {

// A thread's share in the locks that it has for reading: a few at most.
struct Share {
    const void* lock;
    size_t depth;
    bool suspended;  // the thread has it alone for now
};
thread_local std::vector<Share> shares;

// The lock of a database: a thread has it alone, or shares it with other readers, and may take it again. `pending` is
// the change that is under way: the thread that takes the lock first, or lets go of it last, calls its `settle` if it
// is still there. A limit of the thread's memory ends with it.
//
// A thread that reads and then wants the lock alone (a signal handler that writes, say) gives up its share meanwhile,
// or two of them would wait for each other; what it reads further may then have changed.
class StateLock {
public:
    StateLock() = default;
    StateLock(const StateLock&) = delete;
    StateLock& operator=(const StateLock&) = delete;
    ~StateLock() = default;

    bool acquire(bool blocking, double timeout) {
        Time deadline = blocking ? deadline_after(timeout) : Time::min();
        if (is_mine()) {
            ++depth_;
            return true;
        }
        if (!give_up_share(deadline)) return false;
        owner_ = std::this_thread::get_id();
        depth_ = 1;
        if (!pending.is_none()) settle_or_let_go();
        return true;
    }
    void enter() { acquire(true, -1); }

    void release() {
        if (!is_mine()) throw std::runtime_error("the thread does not have the lock");
        if (depth_ == 1 && !pending.is_none()) settle_or_let_go();
        if (depth_ == 1) return let_go();
        --depth_;
    }

    bool acquire_shared(bool blocking, double timeout) {
        if (is_mine()) return acquire(true, -1);
        if (Share* share = my_share()) {
            ++share->depth;
            return true;
        }
        Time deadline = blocking ? deadline_after(timeout) : Time::min();
        shares.reserve(shares.size() + 1);
        while (wait(deadline, true)) {
            if (pending.is_none()) {
                shares.push_back({this, 1, false});
                return true;
            }
            lock_.unlock_shared();
            if (!acquire(blocking, timeout)) return false;
            release();
        }
        return false;
    }
    void enter_shared() { acquire_shared(true, -1); }

    void release_shared() {
        if (is_mine()) return release();
        Share* share = my_share();
        if (!share) throw std::runtime_error("the thread does not have the lock");
        if (--share->depth) return;
        *share = shares.back();
        shares.pop_back();
        lock_.unlock_shared();
    }

    TurnLock::Waits waits() const { return lock_.waits(); }

    // Whether a thread has it alone, perhaps this one: then a change may be under way.
    bool is_taken() const { return owner_.load() != std::thread::id(); }

    nb::object pending = nb::none();

private:
    using Clock = TurnLock::Clock;
    using Time = Clock::time_point;

    bool is_mine() const { return owner_ == std::this_thread::get_id(); }
    Share* my_share() const {
        for (Share& share : shares) {
            if (share.lock == this && !share.suspended) return &share;
        }
        return nullptr;
    }

    static Time deadline_after(double seconds) {
        if (seconds < 0) return Time::max();
        return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    }

    // Without the GIL, which comes back now and then to look for signals.
    bool wait(Time deadline, bool is_shared) {
        if (is_shared ? lock_.try_lock_shared() : lock_.try_lock()) return true;
        while (Clock::now() < deadline) {
            Time until = std::min(deadline, Clock::now() + std::chrono::milliseconds(50));
            bool taken;
            {
                nb::gil_scoped_release release;
                taken = is_shared ? lock_.try_lock_shared_until(until) : lock_.try_lock_until(until);
            }
            if (taken) return true;
            if (PyErr_CheckSignals()) throw nb::python_error();
        }
        return false;
    }

    // Takes the lock alone, in the place of the thread's share if it has one; without the lock, it has that again.
    bool give_up_share(Time deadline) {
        Share* share = my_share();
        if (!share) return wait(deadline, false);
        lock_.unlock_shared();
        share->suspended = true;
        bool taken = false;
        try {
            taken = wait(deadline, false);
        } catch (...) {
            take_shares_back();
            throw;
        }
        if (!taken) take_shares_back();
        return taken;
    }

    void let_go() {
        memory_room = -1;
        depth_ = 0;
        owner_ = std::thread::id();
        lock_.unlock();
        take_shares_back();
    }

    void take_shares_back() {
        for (Share& share : shares) {
            if (share.lock != this || !share.suspended) continue;
            share.suspended = false;
            if (lock_.try_lock_shared()) continue;
            nb::gil_scoped_release release;
            lock_.lock_shared();
        }
    }

    void settle_or_let_go() {
        try {
            nb::object settle = pending.attr("settle");
            settle();
        } catch (...) {
            let_go();
            throw;
        }
    }

    TurnLock lock_;
    std::atomic<std::thread::id> owner_ = std::thread::id();
    size_t depth_ = 0;
};

// The lock for reading, in a `with`.
struct SharedSide {
    StateLock& lock;
};

struct RowRun {
    size_t trigger;
    std::vector<unsigned> places;
};

// The way of one row of a table: its codes, the expressions over them, and the triggers that it goes through, each with
// the places of the codes that it wants.
class RowPath {
public:
    // `compute` takes a row's codes where the expressions turn back, and returns all codes, or None.
    RowPath(Kernel& kernel, const nb::list& columns, const nb::object& expressions, nb::object compute,
            const nb::list& runs)
        : kernel_(kernel), encoder_(columns), compute_(std::move(compute)), kept_(expressions) {
        if (!expressions.is_none()) expressions_ = &nb::cast<Expressions&>(expressions);
        for (nb::handle run : runs) {
            auto [trigger, places] = nb::cast<std::pair<size_t, std::vector<unsigned>>>(run);
            for (unsigned place : places) {
                if (place >= width()) throw std::invalid_argument("a row lacks codes");
            }
            runs_.push_back({trigger, std::move(places)});
        }
    }

    size_t width() const { return encoder_.arity() + (expressions_ ? expressions_->outputs() : 0); }

    // The codes of a row and of the expressions over it, for `run`; None if the batch path has to take it.
    nb::object encode(nb::handle row) {
        Words words;
        return encoded(row, words) ? tuple_of(words) : nb::none();
    }

    // All triggers or none, and none if a stored sum would not fit its type.
    void run(nb::handle codes, int64_t weight) {
        Words words;
        read(codes, words);
        run_words(words, weight);
    }

    // A row as a transaction of its own; false if the batch path has to take it, which knows why.
    bool apply(nb::handle row, int64_t weight) {
        Words words;
        if (!encoded(row, words)) return false;
        try {
            run_words(words, weight);
        } catch (const Overflow&) {
            return false;
        } catch (const BrokenCheck&) {
            return false;
        }
        return true;
    }

private:
    using Words = std::vector<int64_t>;

    bool encoded(nb::handle row, Words& words) {
        std::vector<PyObject*> values;
        std::vector<nb::object> owned;
        words.resize(width());
        if (!encoder_.values(row, values, owned) || !encoder_.encode(values, words.data())) return false;
        if (!expressions_ || expressions_->complete(words.data(), encoder_.arity())) return true;
        nb::object all = compute_(tuple_of({words.begin(), words.begin() + static_cast<ptrdiff_t>(encoder_.arity())}));
        if (all.is_none()) return false;
        read(all, words);
        return true;
    }

    void read(nb::handle codes, Words& words) const {
        if (!PyTuple_Check(codes.ptr())) throw nb::type_error("the codes of a row are a tuple");
        words.resize(static_cast<size_t>(PyTuple_GET_SIZE(codes.ptr())));
        if (words.size() != width()) throw std::invalid_argument("a row lacks codes");
        for (size_t i = 0; i < words.size(); ++i) {
            words[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(codes.ptr(), static_cast<Py_ssize_t>(i)));
            if (words[i] == -1 && PyErr_Occurred()) throw nb::python_error();
        }
    }

    // The GIL stays, as the work is below a switch.
    void run_words(const Words& words, int64_t weight) {
        auto lock = write_lock(kernel_);
        auto strings = kernel_.hold_dictionaries();
        inputs_[0].n = 1;
        inputs_[0].weights = &weight;
        kernel_.undoably([&] {
            for (const RowRun& run : runs_) {
                Trigger& trigger = kernel_.trigger(run.trigger);
                pick(run, trigger, words);
                kernel_.machine.run(trigger, inputs_, kernel_.log());
            }
            kernel_.misfits([](size_t, const int64_t*) { throw Overflow(); });
        });
        for (const RowRun& run : runs_) kernel_.trim(kernel_.trigger(run.trigger));
    }

    void pick(const RowRun& run, const Trigger& trigger, const Words& words) {
        auto& columns = inputs_[0].columns;
        columns.clear();
        for (unsigned place : run.places) columns.push_back(&words[place]);
        if (trigger.input_widths.size() != 1 || columns.size() < trigger.input_widths[0]) {
            throw std::invalid_argument("an input lacks columns");
        }
    }

    Kernel& kernel_;
    RowEncoder encoder_;
    Expressions* expressions_ = nullptr;
    nb::object compute_, kept_;
    std::vector<RowRun> runs_;
    std::vector<Input> inputs_{1};
};

// The whole of an insert or delete of one row, where nothing but the kernel has to know of it. It declines whatever is
// not of that kind, and each row that comes when `rows_left` have been taken: Python has work to do then.
class RowGate {
public:
    // `rows_left` may be taken until Python says so again; `running` has an attribute `name` that is not empty while
    // this thread is in a function of a user.
    RowGate(const nb::object& lock, nb::dict open_reads, nb::object running, size_t rows)
        : rows_left(rows),
          lock_(nb::cast<StateLock&>(lock)),
          open_reads_(std::move(open_reads)),
          running_(std::move(running)),
          name_(nb::str("name")),
          kept_(lock) {}

    void set_path(nb::object table, nb::object path, bool deletes, bool counts) {
        numbers_[table] = entries_.size();
        entries_.push_back({&nb::cast<RowPath&>(path), path, deletes, counts});
    }
    void forget() {
        numbers_.clear();
        entries_.clear();
    }

    bool apply(nb::handle table, nb::handle row, int64_t weight) {
        if (!is_open || !rows_left || lock_.is_taken() || !PyUnicode_CheckExact(table.ptr())) return false;
        nb::object running = running_.attr(name_);
        if (nb::len(running)) return false;
        lock_.enter();
        bool done;
        try {
            done = apply_locked(table, row, weight);
        } catch (...) {
            lock_.release();
            throw;
        }
        lock_.release();
        return done;
    }

    bool is_open = true;
    size_t rows_left;

private:
    struct Entry {
        RowPath* path;
        nb::object kept;
        bool deletes;  // rows may be deleted
        bool counts;   // a row may bring along codes that are to be taken back one day
    };

    bool apply_locked(nb::handle table, nb::handle row, int64_t weight) {
        PyObject* number = PyDict_GetItemWithError(numbers_.ptr(), table.ptr());
        if (!number || PyDict_GET_SIZE(open_reads_.ptr())) return false;
        Entry entry = entries_[PyLong_AsSize_t(number)];
        if ((weight < 0 && !entry.deletes) || !entry.path->apply(row, weight)) return false;
        if (entry.counts) --rows_left;
        return true;
    }

    StateLock& lock_;
    nb::dict numbers_, open_reads_;
    std::vector<Entry> entries_;
    nb::object running_, name_, kept_;
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
        .def("encode", &RowPath::encode)
        .def("run", &RowPath::run)
        .def("apply", &RowPath::apply);
    nb::class_<RowGate>(m, "RowGate")
        .def(nb::init<const nb::object&, nb::dict, nb::object, size_t>())
        .def_rw("is_open", &RowGate::is_open)
        .def_rw("rows_left", &RowGate::rows_left)
        .def("set_path", &RowGate::set_path)
        .def("forget", &RowGate::forget)
        .def("apply", &RowGate::apply, nb::arg("table").none(), nb::arg("row").none(), nb::arg("weight"));
}

}  // namespace ivme
