// A record batch that another thread encodes while this one goes on, as with the batch before it. It is copied first:
// once it is taken, nothing of its giver's memory is read. What takes less than to wake a thread is encoded at once.
#pragma once

#include <atomic>
#include <exception>
#include <memory>

#include "row_path.hpp"
#include "workers.hpp"

namespace ivme {

// So many values are worth another thread; a string counts for several. Tests give it fewer.
inline std::atomic<size_t> values_ahead = 16384;

class RowsAhead {
public:
    explicit RowsAhead(nb::object path) : rows(std::make_unique<EncodedRows>()), kept_(std::move(path)) {}
    RowsAhead(const RowsAhead&) = delete;
    RowsAhead& operator=(const RowsAhead&) = delete;
    ~RowsAhead() { wait(); }

    // False if there is no other thread, or the batch path has to take the rows.
    bool begin(const nb::tuple& capsules, bool comes) {
        const RowPath& path = nb::cast<RowPath&>(kept_);
        unsigned others = path.threads() - 1;
        if (!others) return false;
        const ArrowArray* array = path.begin_arrow(capsules, *rows, comes);
        if (!array) return false;
        given_ = std::exchange(rows->array, holder());
        task_.work = [this, &path, array, others] {
            try {
                *copy_ = path.copied(*array);
                is_done_ = *copy_ && path.finish_arrow((*copy_)->array(), *rows, others);
            } catch (...) {
                error_ = std::current_exception();
            }
        };
        if (rows->work < values_ahead) {
            nb::gil_scoped_release release;
            task_.work();
        } else {
            Workers::shared().post(task_);
        }
        return true;
    }

    // The codes, once; None if the batch path has to take the rows.
    nb::object take() {
        wait();
        given_.reset();
        if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
        if (!is_done_) return nb::none();
        is_done_ = false;
        return nb::cast(rows.release(), nb::rv_policy::take_ownership);
    }

    // What was given, for Arrow; None if it could not be copied.
    nb::object data() const { return *copy_ ? ArrowCopy::exported(*copy_) : nb::none(); }

    std::unique_ptr<EncodedRows> rows;

private:
    using Copy = std::shared_ptr<const ArrowCopy>;

    // Keeps the copy for as long as there are codes in it.
    nb::object holder() {
        auto held = std::make_unique<Copy>();
        copy_ = held.get();
        holder_ = nb::capsule(held.release(), [](void* copy) noexcept { delete static_cast<Copy*>(copy); });
        return holder_;
    }

    void wait() {
        if (task_.state == Task::State::made || task_.state == Task::State::done) return;
        nb::gil_scoped_release release;
        Workers::shared().join(task_);
    }

    nb::object kept_, given_, holder_;
    Copy* copy_ = nullptr;
    Task task_;
    bool is_done_ = false;
    std::exception_ptr error_;
};

}  // namespace ivme
