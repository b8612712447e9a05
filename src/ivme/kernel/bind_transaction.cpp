// What makes a change of the state one thing for Python: a lock that knows what is under way, and a row in one call.
//
// An asynchronous exception (Ctrl-C) may end Python code between any two instructions, but not a native call. So the
// lock is taken and let go by native calls, which first end whatever such an exception left half done.
#include <nanobind/stl/array.h>

#include "bind.hpp"

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
        auto lock = write_lock(kernel_);
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
    nb::class_<RowRuns>(m, "RowRuns")
        .def(nb::init<Kernel&, const nb::list&>(), nb::keep_alive<1, 2>())
        .def("run", &RowRuns::run);
}

}  // namespace ivme
