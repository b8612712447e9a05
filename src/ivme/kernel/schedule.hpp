// The steps of a batch, and which have to wait for which: whatever order its threads take them in, each map, table and
// delta sees what it would see if they were taken one after the other.
//
// Rows that come are cut into pieces, each a batch of its own to the steps of its trigger: a step works on one piece
// while the next step works on the piece before. What waits for what depends on the triggers only, and is remembered
// for the next batch of the same kind, with the time that each step took.
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "machine.hpp"

namespace ivme {

// A trigger, and what it is run over.
struct Job {
    Trigger* trigger;
    std::vector<Input> inputs;
    LoadedJob* loaded = nullptr;  // what its loads have found before, if anything

    size_t rows() const {
        size_t total = 0;
        for (const Input& input : inputs) total += input.n;
        return total;
    }
};

// So many rows are a piece at least. Tests make smaller ones.
inline std::atomic<size_t> rows_of_piece = 2048;

class Schedule {
public:
    // What the schedule of a job depends on: its trigger, into how many pieces its rows are cut, and in how many parts
    // each of its steps that store rows stores them: 0 if at once.
    struct Shape {
        uint64_t trigger;
        size_t pieces;
        std::vector<unsigned> parts;
        bool operator==(const Shape&) const = default;
    };
    // Tables that take their rows in parts have begun to: all parts have to be added, or rolled back. `log` is told.
    static std::vector<Shape> shapes_of(const std::vector<Job>& jobs, UndoLog& log);

    Schedule(const std::vector<Job>& jobs, std::vector<Shape> shapes);
    const std::vector<Shape>& shapes() const { return shapes_; }

    // Whether rows that come may be cut into pieces, and into how many so many rows are.
    static bool may_be_cut(const Trigger& trigger);
    static size_t pieces_of(size_t rows);

    // Whether there is anything to do at the same time.
    bool is_wide() const { return is_wide_; }

    // Runs all steps, each on one of these threads, and on the first of them what comes `behind`, if anything does, as
    // soon as nothing but tables is left to do. If steps fail, what the first of them in the order of the jobs says is
    // thrown; then others have been done or not, and the logs know.
    struct Lane {
        Machine& machine;
        UndoLog& log;
    };
    void run(const std::vector<Job>& jobs, const std::vector<Lane>& lanes, const std::function<void()>& behind);
    // Of the job whose step failed.
    size_t failed_job() const { return failed_ < nodes_.size() ? nodes_[failed_].job : 0; }

private:
    struct Node {
        size_t job, piece;
        size_t step;  // its number, or all steps of the trigger
        int part;     // of the step
        bool stores;
        float pace;  // how many nanoseconds it takes for a row, as it did lately
        size_t to_wait_for = 0;
        std::vector<size_t> next;
        // In the batch that is under way:
        size_t waits = 0;
        float cost = 0, height = 0;
    };
    // What a thing has seen so far.
    struct Seen {
        size_t writer = NOBODY;
        std::vector<size_t> readers;
    };
    struct Stopped : std::exception {};  // thrown where a step is not wanted any more

    static constexpr size_t NOBODY = ~size_t{0}, ALL_STEPS = ~size_t{0}, BEHIND = NOBODY - 1;
    static constexpr int WHOLE = -1;

    static bool is_one(const Trigger& trigger);
    static size_t pieces_of(const Job& job);
    bool is_loaded(const Node& node) const;
    void add_steps(size_t job, size_t piece, const Trigger& trigger, const Trigger& own);
    void add_node(size_t job, size_t piece, size_t step, int part, bool stores, float pace);
    void add_whole(size_t job, const Trigger& trigger);
    void claim(size_t node, const void* thing, bool changes);
    void claim_step(size_t node, const Step& step, const Trigger& own);
    void follow(size_t node, size_t before);
    void begin(const std::vector<Job>& jobs);
    void cut(const std::vector<Job>& jobs);
    void work(const Lane& lane, bool is_first);
    size_t taken(std::unique_lock<std::mutex>& lock, const Lane& lane, bool is_first);
    void run_node(size_t node, const Lane& lane);
    void run_behind();
    void run_step(const Node& node, const Lane& lane);
    void fail(size_t node) noexcept;
    void finish(size_t node);

    std::vector<Shape> shapes_;
    std::vector<Node> nodes_;
    std::unordered_map<const void*, Seen> seen_;
    bool is_wide_ = false;
    const std::vector<Job>* jobs_ = nullptr;
    std::vector<std::vector<std::vector<Input>>> inputs_;  // by job and piece
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<size_t> ready_;
    size_t running_ = 0;
    size_t steps_left_ = 0;                          // but for those that store rows
    const std::function<void()>* behind_ = nullptr;  // if it is still to be done
    float behind_time_ = 0;                          // how many nanoseconds that took lately
    std::atomic<uint64_t> finished_ = 0;             // nodes that ran
    std::atomic<size_t> failed_ = NOBODY;            // the first node that failed
    std::exception_ptr error_;
};

}  // namespace ivme
