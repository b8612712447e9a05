// The threads of one kernel: what each needs of its own to run steps, beside the kernel's own machine and log.
#pragma once

#include <memory>
#include <vector>

#include "schedule.hpp"

namespace ivme {

class Team {
public:
    // `first` is the log of the thread that has the kernel.
    Team(const Seed& seed, UndoLog* first, OldMaps* old, UndoLog::Turns* turns)
        : seed_(seed), old_(old), turns_(turns), logs_{first} {}

    // One after the other, or on several threads if that pays. What comes `behind` needs no tables.
    void run(const std::vector<Job>& jobs, Machine& machine, const std::function<void()>& behind) {
        failed_run = 0;
        Schedule* wide = nullptr;
        if (pays(jobs)) wide = &schedule_of(jobs);
        if (!wide || !wide->is_wide()) {
            run_in_order(jobs, machine);
            if (behind) behind();
            return;
        }
        Schedule& schedule = *wide;
        complete();
        ++batches_shared;
        std::vector<Schedule::Lane> lanes{{machine, *logs_[0]}};
        for (size_t i = 1; i < threads; ++i) lanes.push_back({*members_[i - 1].machine, *logs_[i]});
        try {
            schedule.run(jobs, lanes, behind);
        } catch (...) {
            failed_run = schedule.failed_job();
            count(machine);
            throw;
        }
        count(machine);
    }

    // All that may say what a transaction changed.
    const std::vector<UndoLog*>& logs() const { return logs_; }

    void trim() noexcept {
        for (Member& member : members_) member.machine->trim();
    }
    void release() noexcept {
        for (Member& member : members_) {
            member.machine->release();
            member.log->release();
        }
    }
    size_t bytes() const {
        size_t total = 0;
        for (const Member& member : members_) total += member.machine->bytes() + member.log->bytes();
        return total;
    }

    unsigned threads = 1;
    uint64_t batches_shared = 0;
    size_t failed_run = 0;  // the number of the job that was refused last

private:
    struct Member {
        std::unique_ptr<Machine> machine;
        std::unique_ptr<UndoLog> log;
    };

    // So many rows take longer than to wake a thread.
    static constexpr size_t MANY_ROWS = 1000;
    static constexpr size_t MOST_SCHEDULES = 8;

    // What limits memory counts what one thread takes.
    bool pays(const std::vector<Job>& jobs) const {
        if (threads < 2 || memory_room >= 0 || allocation_budget >= 0) return false;
        size_t rows = 0;
        for (const Job& job : jobs) rows = std::max(rows, job.rows());
        return rows >= MANY_ROWS;
    }

    // One that was made for such jobs before, or a new one in place of that which was used the longest ago.
    Schedule& schedule_of(const std::vector<Job>& jobs) {
        std::vector<Schedule::Shape> shapes = Schedule::shapes_of(jobs, *logs_[0]);
        auto fits = [&](const auto& each) { return each->shapes() == shapes; };
        auto found = std::find_if(schedules_.begin(), schedules_.end(), fits);
        if (found == schedules_.end()) {
            if (schedules_.size() == MOST_SCHEDULES) schedules_.pop_back();
            schedules_.push_back(std::make_unique<Schedule>(jobs, std::move(shapes)));
            found = schedules_.end() - 1;
        }
        std::rotate(schedules_.begin(), found, found + 1);
        return *schedules_.front();
    }

    void run_in_order(const std::vector<Job>& jobs, Machine& machine) {
        for (const Job& job : jobs) {
            machine.run(*job.trigger, job.inputs, *logs_[0], job.loaded);
            ++failed_run;
        }
    }

    void complete() {
        logs_.reserve(threads);
        while (members_.size() + 1 < threads) {
            members_.push_back({std::make_unique<Machine>(seed_), std::make_unique<UndoLog>(old_, turns_)});
            logs_.push_back(members_.back().log.get());
        }
    }

    // What the others did counts as the kernel's.
    void count(Machine& machine) {
        for (Member& member : members_) {
            machine.operations += std::exchange(member.machine->operations, 0);
            machine.scans += std::exchange(member.machine->scans, 0);
            machine.loads_taken += std::exchange(member.machine->loads_taken, 0);
        }
    }

    Seed seed_;
    OldMaps* old_;
    UndoLog::Turns* turns_;
    std::vector<Member> members_;
    std::vector<std::unique_ptr<Schedule>> schedules_;  // the one that was used last comes first
    std::vector<UndoLog*> logs_;
};

}  // namespace ivme
