// The record batches of a batch, which other threads encode while this one goes on, as with the batch before it. They
// are copied first: once they are taken, nothing of their giver's memory is read. Then another thread does the loads of
// triggers, until the batch is applied. What takes less than to wake a thread is encoded at once.
#pragma once

#include <atomic>
#include <deque>
#include <exception>
#include <memory>
#include <vector>

#include "row_path.hpp"
#include "workers.hpp"

namespace ivme {

// So many values are worth another thread; a string counts for several. Tests give it fewer.
inline std::atomic<size_t> values_ahead = 2048;

class RowsAhead {
public:
    struct Part {
        nb::object path;  // which keeps what its rows are encoded by
        const ArrowPath* arrow;
        int64_t weight;
        bool leaves_unread_out;
        nb::object encoded;
        EncodedRows* rows;
        const ArrowArray* given;
        nb::object kept_given;
        std::shared_ptr<const ArrowCopy>* copy;  // which the rows keep
        std::vector<EncodingJobs> columns;
        std::atomic<size_t> left = 0;  // of these
        std::atomic<bool> is_certain = true;
        bool is_done = false;
    };

    RowsAhead() = default;
    RowsAhead(const RowsAhead&) = delete;
    RowsAhead& operator=(const RowsAhead&) = delete;
    ~RowsAhead() { stop(); }

    // Another table's record batch; false if the batch path has to take it.
    bool add(const nb::object& path, const nb::tuple& capsules, int64_t weight, size_t entry, size_t generation) {
        RowPath& taken = nb::cast<RowPath&>(path);
        auto rows = std::make_unique<EncodedRows>();
        const ArrowArray* given = taken.arrow() ? taken.arrow()->begin(capsules, *rows, weight > 0) : nullptr;
        if (!given) return false;
        rows->entry = entry;
        rows->generation = generation;
        work_ += rows->work;
        others_ = taken.threads() - 1;
        Part& part = parts.emplace_back();
        part.path = path;
        part.arrow = taken.arrow();
        part.weight = weight;
        part.leaves_unread_out = taken.has_passed_rows();
        part.rows = rows.get();
        part.given = given;
        part.kept_given = std::exchange(rows->array, holder(part));
        part.encoded = nb::cast(rows.release(), nb::rv_policy::take_ownership);
        return true;
    }

    void begin() {
        is_shared_ = work_ >= values_ahead;
        loading_.work = [this] {
            for (Part& part : parts) {
                if (part.is_done) part.arrow->loads().load(*part.rows, part.weight, is_wanted_);
            }
        };
        for (Part& part : parts) units_.push_back({&part, nullptr});
        unfinished_ = units_.size();
        if (!is_shared_) {
            nb::gil_scoped_release release;
            return encode_all();
        }
        for (unsigned i = 0; i < std::min(others_, MOST_ENCODERS); ++i) {
            encoders_.emplace_back().work = [this] { encode_all(); };
            Workers::shared().post(encoders_.back());
        }
    }

    // Whether all are encoded; if not, the batch path has to take them.
    bool take() {
        finish_encoding();
        for (Part& part : parts) part.kept_given.reset();
        if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
        return std::all_of(parts.begin(), parts.end(), [](const Part& part) { return part.is_done; });
    }

    // Ends what is under way: the rows are for others from here on.
    void stop() {
        is_wanted_ = true;
        finish_encoding();
        join(loading_);
    }

    // What was given, for Arrow; None if it could not be copied.
    nb::object data(size_t part) const {
        const auto& copy = *parts.at(part).copy;
        return copy ? ArrowCopy::exported(copy) : nb::none();
    }

    std::deque<Part> parts;

private:
    using Copy = std::shared_ptr<const ArrowCopy>;

    // Columns of a part to encode or, where there are none, the part to copy.
    struct Unit {
        Part* part;
        const EncodingJobs* columns;
    };

    static constexpr unsigned MOST_ENCODERS = 4;

    // Keeps the copy for as long as there are codes in it.
    static nb::object holder(Part& part) {
        auto held = std::make_unique<Copy>();
        part.copy = held.get();
        return nb::capsule(held.release(), [](void* copy) noexcept { delete static_cast<Copy*>(copy); });
    }

    // What no other thread has begun.
    void encode_all() {
        std::unique_lock lock(mutex_);
        while (!units_.empty()) {
            Unit unit = units_.front();
            units_.pop_front();
            lock.unlock();
            std::exception_ptr failure;
            try {
                unit.columns ? encode(*unit.part, *unit.columns) : copy(*unit.part);
            } catch (...) {
                failure = std::current_exception();
            }
            lock.lock();
            if (failure) error_ = failure;
            if (--unfinished_ || !is_shared_ || is_wanted_) continue;
            lock.unlock();
            Workers::shared().post(loading_);
            lock.lock();
        }
    }
    void copy(Part& part) {
        *part.copy = part.arrow->copied(*part.given, part.leaves_unread_out);
        if (!*part.copy) return;
        part.columns = part.arrow->columns_of((*part.copy)->array(), *part.rows);
        part.left = part.columns.size();
        std::lock_guard guard(mutex_);
        unfinished_ += part.columns.size();
        for (const EncodingJobs& columns : part.columns) units_.push_back({&part, &columns});
    }
    void encode(Part& part, const EncodingJobs& columns) {
        Brought brought;
        unsigned threads = columns.size() * part.rows->n >= shared_values ? others_ : 1;
        if (!ParallelEncoding(columns, part.rows->n).run(threads, brought)) part.is_certain = false;
        if (!brought.empty()) {
            std::lock_guard guard(mutex_);
            part.rows->brought.insert(part.rows->brought.end(), brought.begin(), brought.end());
        }
        if (!--part.left) part.is_done = part.is_certain && part.arrow->has_keys(*part.rows);
    }

    void finish_encoding() {
        if (encoders_.empty()) return;
        nb::gil_scoped_release release;
        encode_all();
        for (Task& encoder : encoders_) Workers::shared().join(encoder);
    }
    static void join(Task& task) {
        if (task.state == Task::State::made || task.state == Task::State::done) return;
        nb::gil_scoped_release release;
        Workers::shared().join(task);
    }

    std::deque<Task> encoders_;
    Task loading_;
    bool is_shared_ = false;               // with other threads
    std::atomic<bool> is_wanted_ = false;  // the batch is to be applied
    size_t work_ = 0;
    unsigned others_ = 0;
    std::mutex mutex_;  // of what follows
    std::deque<Unit> units_;
    size_t unfinished_ = 0;  // units, those under way among them
    std::exception_ptr error_;
};

}  // namespace ivme
