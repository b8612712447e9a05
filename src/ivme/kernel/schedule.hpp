// The steps of a batch, and which have to wait for which: whatever order its threads take them in, each map, table and
// delta sees what it would see if they were taken one after the other.
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "machine.hpp"

namespace ivme {

// A trigger, and what it is run over.
struct Job {
    Trigger* trigger;
    std::vector<Input> inputs;

    size_t rows() const {
        size_t total = 0;
        for (const Input& input : inputs) total += input.n;
        return total;
    }
};

class Schedule {
public:
    // `log` is told of tables that are to change.
    Schedule(const std::vector<Job>& jobs, UndoLog& log);

    // Whether there is anything to do at the same time.
    bool is_wide() const { return is_wide_; }

    // Runs all steps, each on one of these threads. If steps fail, what the first of them in the order of the jobs says
    // is thrown; then others have been done or not, and the logs know.
    struct Lane {
        Machine& machine;
        UndoLog& log;
    };
    void run(const std::vector<Lane>& lanes);
    // Of the job whose step failed.
    size_t failed_job() const { return failed_ < nodes_.size() ? nodes_[failed_].job : 0; }

private:
    struct Node {
        size_t job;
        const Step* step;  // null: all steps of the trigger
        int part = WHOLE;  // of the step
        size_t cost = 0, height = 0;
        unsigned waits = 0;
        std::vector<size_t> next;
    };
    // What a thing has seen so far.
    struct Seen {
        size_t writer = NOBODY;
        std::vector<size_t> readers;
    };
    struct Stopped : std::exception {};  // thrown where a step is not wanted any more

    static constexpr size_t NOBODY = ~size_t{0};
    static constexpr int WHOLE = -1;

    void add_steps(size_t job, UndoLog& log);
    bool add_parts(size_t job, const Step& step, UndoLog& log);
    void add_whole(size_t job);
    void claim(size_t node, const void* thing, bool changes);
    void claim_step(size_t node, const Trigger& trigger, const Step& step);
    void follow(size_t node, size_t before);
    void set_heights();
    void work(const Lane& lane, bool is_first);
    size_t taken(std::unique_lock<std::mutex>& lock, const Lane& lane, bool is_first);
    void run_node(size_t node, const Lane& lane);
    void fail(size_t node) noexcept;
    void finish(size_t node);

    const std::vector<Job>& jobs_;
    std::vector<Node> nodes_;
    std::unordered_map<const void*, Seen> seen_;
    bool is_wide_ = false;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<size_t> ready_;
    size_t running_ = 0;
    std::atomic<uint64_t> finished_ = 0;   // nodes that ran
    std::atomic<size_t> failed_ = NOBODY;  // the first node that failed
    std::exception_ptr error_;
};

}  // namespace ivme
