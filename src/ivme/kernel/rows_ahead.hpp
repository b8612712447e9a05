// The record batches of a batch, which another thread encodes while this one goes on, as with the batch before it. They
// are copied first: once they are taken, nothing of their giver's memory is read. Then it does the loads of triggers,
// until the batch is applied. What takes less than to wake a thread is encoded at once.
#pragma once

#include <atomic>
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
        Part part{path, taken.arrow(), weight, taken.has_passed_rows(), {}, rows.get(), given, {}, nullptr};
        part.kept_given = std::exchange(rows->array, holder(part));
        part.encoded = nb::cast(rows.release(), nb::rv_policy::take_ownership);
        parts.push_back(std::move(part));
        return true;
    }

    void begin() {
        is_shared_ = work_ >= values_ahead;
        encoding_.work = [this] { encode_all(); };
        loading_.work = [this] {
            for (Part& part : parts) {
                if (part.is_done) part.arrow->loads().load(*part.rows, part.weight, is_wanted_);
            }
        };
        if (is_shared_) return Workers::shared().post(encoding_);
        nb::gil_scoped_release release;
        encode_all();
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

    std::vector<Part> parts;

private:
    using Copy = std::shared_ptr<const ArrowCopy>;

    // Keeps the copy for as long as there are codes in it.
    static nb::object holder(Part& part) {
        auto held = std::make_unique<Copy>();
        part.copy = held.get();
        return nb::capsule(held.release(), [](void* copy) noexcept { delete static_cast<Copy*>(copy); });
    }

    // Those that no other thread has begun.
    void encode_all() {
        for (size_t number = next_++; number < parts.size(); number = next_++) {
            try {
                encode(parts[number]);
            } catch (...) {
                std::lock_guard guard(mutex_);
                error_ = std::current_exception();
            }
            if (++encoded_ == parts.size() && is_shared_ && !is_wanted_) Workers::shared().post(loading_);
        }
    }
    void encode(Part& part) const {
        *part.copy = part.arrow->copied(*part.given, part.leaves_unread_out);
        part.is_done = *part.copy && part.arrow->finish((*part.copy)->array(), *part.rows, others_);
    }

    void finish_encoding() {
        if (encoding_.state == Task::State::made || encoding_.state == Task::State::done) return;
        nb::gil_scoped_release release;
        encode_all();
        Workers::shared().join(encoding_);
    }
    static void join(Task& task) {
        if (task.state == Task::State::made || task.state == Task::State::done) return;
        nb::gil_scoped_release release;
        Workers::shared().join(task);
    }

    Task encoding_, loading_;
    bool is_shared_ = false;               // with other threads
    std::atomic<size_t> next_ = 0;         // the part to encode
    std::atomic<size_t> encoded_ = 0;      // parts
    std::atomic<bool> is_wanted_ = false;  // the batch is to be applied
    size_t work_ = 0;
    unsigned others_ = 0;
    std::mutex mutex_;
    std::exception_ptr error_;
};

}  // namespace ivme
