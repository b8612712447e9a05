#include "schedule.hpp"

#include <algorithm>

#include "workers.hpp"

namespace ivme {

namespace {

// Stands for the pool of long floats, which all triggers with such sums change.
constexpr char FLOATS = 0;

bool has_floats(const Trigger& trigger) {
    return std::any_of(trigger.registers.begin(), trigger.registers.end(),
                       [](const Delta& delta) { return delta.layout.has_floats; });
}

}  // namespace

Schedule::Schedule(const std::vector<Job>& jobs, UndoLog& log) : jobs_(jobs) {
    for (size_t job = 0; job < jobs.size(); ++job) {
        const Trigger& trigger = *jobs[job].trigger;
        bool is_one = !trigger.overlays.empty() || !trigger.partitions.empty() || has_floats(trigger);
        is_one ? add_whole(job) : add_steps(job, log);
    }
    set_heights();
    seen_.clear();
}

void Schedule::add_steps(size_t job, UndoLog& log) {
    const Trigger& trigger = *jobs_[job].trigger;
    for (const Step& step : trigger.steps) {
        if (add_parts(job, step, log)) continue;
        size_t width = 2;
        if (const auto* store = std::get_if<StoreStep>(&step)) width = store->columns.size();
        nodes_.push_back({job, &step, WHOLE, jobs_[job].rows() * width, 0, 0, {}});
        claim_step(nodes_.size() - 1, trigger, step);
    }
}

// Rows that come are stored in parts, which do not wait for each other.
bool Schedule::add_parts(size_t job, const Step& step, UndoLog& log) {
    const auto* store = std::get_if<StoreStep>(&step);
    if (!store || seen_.contains(store->heap) || store->heap->append_parts() < 2) return false;
    const Input& input = jobs_[job].inputs[store->input];
    log.touch(store->heap);
    if (!store->heap->begin_append(input.weights, input.n)) return false;
    for (unsigned part = 0; part < store->heap->append_parts(); ++part) {
        nodes_.push_back({job, &step, static_cast<int>(part), input.n * (part ? 3 : 6), 0, 0, {}});
        claim(nodes_.size() - 1, store->heap, false);
    }
    return true;
}

// Steps that share more than their deltas stay together.
void Schedule::add_whole(size_t job) {
    const Trigger& trigger = *jobs_[job].trigger;
    nodes_.push_back({job, nullptr, WHOLE, jobs_[job].rows() * 2 * trigger.steps.size(), 0, 0, {}});
    size_t node = nodes_.size() - 1;
    claim(node, &trigger, true);
    for (const Delta& delta : trigger.registers) claim(node, &delta, true);
    for (const Map* map : trigger.maps) claim(node, map, true);
    for (const Heap* heap : trigger.heaps) claim(node, heap, true);
    for (const Partition* partition : trigger.partitions) {
        claim(node, partition, true);
        claim(node, partition->heavy, true);
        for (const Map* map : partition->maps) claim(node, map, true);
    }
    if (has_floats(trigger)) claim(node, &FLOATS, true);
}

void Schedule::claim_step(size_t node, const Trigger& trigger, const Step& step) {
    std::visit(
        [&](const auto& s) {
            using Kind = std::decay_t<decltype(s)>;
            if constexpr (requires { s.origin; }) claim(node, &trigger.registers[s.origin], false);
            if constexpr (requires { s.target; }) claim(node, &trigger.registers[s.target], true);
            if constexpr (requires { s.heap; }) claim(node, s.heap, true);
            if constexpr (std::is_same_v<Kind, JoinStep>) {
                for (const Read& read : s.reads) claim(node, read.map, false);
                if (s.fused) claim(node, &trigger.registers[s.sum_target], true);
            } else if constexpr (std::is_same_v<Kind, AddStep>) {
                claim(node, s.map, true);
                if (s.presence >= 0) claim(node, &trigger.registers[static_cast<size_t>(s.presence)], true);
            } else if constexpr (requires { s.map; }) {
                claim(node, s.map, false);
            }
        },
        step);
}

void Schedule::claim(size_t node, const void* thing, bool changes) {
    Seen& seen = seen_[thing];
    follow(node, seen.writer);
    if (!changes) {
        seen.readers.push_back(node);
        return;
    }
    for (size_t reader : seen.readers) follow(node, reader);
    seen.readers.clear();
    seen.writer = node;
}

void Schedule::follow(size_t node, size_t before) {
    if (before == NOBODY || before == node) return;
    auto& next = nodes_[before].next;
    if (std::find(next.begin(), next.end(), node) != next.end()) return;
    next.push_back(node);
    ++nodes_[node].waits;
}

// How much is left to do one after the other from a node on: what has most of that comes first.
void Schedule::set_heights() {
    size_t total = 0, highest = 0;
    for (size_t i = nodes_.size(); i-- > 0;) {
        Node& node = nodes_[i];
        for (size_t next : node.next) node.height = std::max(node.height, nodes_[next].height);
        node.height += node.cost;
        total += node.cost;
        highest = std::max(highest, node.height);
    }
    is_wide_ = highest < total;
}

void Schedule::run(const std::vector<Lane>& lanes) {
    for (size_t i = 0; i < nodes_.size(); ++i) {
        if (!nodes_[i].waits) ready_.push_back(i);
    }
    Workers::shared().run(count_of(lanes), [&](unsigned number) { work(lanes[number], number == 0); });
    if (error_) std::rethrow_exception(error_);
}

void Schedule::work(const Lane& lane, bool is_first) {
    std::unique_lock lock(mutex_);
    for (;;) {
        size_t node = taken(lock, lane, is_first);
        if (node == NOBODY) return;
        ++running_;
        lock.unlock();
        bool is_done = true;
        try {
            run_node(node, lane);
        } catch (const Stopped&) {
            is_done = false;
        } catch (...) {
            is_done = false;
            fail(node);
        }
        lock.lock();
        --running_;
        ++finished_;
        if (is_done) finish(node);
        changed_.notify_all();
    }
}

// The next node for this thread, for which it waits while others are under way; NOBODY at the end.
size_t Schedule::taken(std::unique_lock<std::mutex>& lock, const Lane& lane, bool is_first) {
    for (;;) {
        std::erase_if(ready_, [&](size_t node) { return node > failed_; });
        if (!ready_.empty()) {
            auto higher = [&](size_t a, size_t b) {
                return nodes_[a].height != nodes_[b].height ? nodes_[a].height < nodes_[b].height : a > b;
            };
            auto best = std::max_element(ready_.begin(), ready_.end(), higher);
            size_t node = *best;
            ready_.erase(best);
            return node;
        }
        if (!running_) return NOBODY;
        uint64_t before = finished_;
        lock.unlock();
        look_for([&] { return finished_ != before; });
        lock.lock();
        if (finished_ != before) continue;
        if (!is_first) {
            changed_.wait(lock);
            continue;
        }
        // The thread of the caller looks whether it is interrupted.
        if (changed_.wait_for(lock, std::chrono::milliseconds(50)) == std::cv_status::no_timeout) continue;
        lock.unlock();
        try {
            lane.machine.poll();
        } catch (...) {
            fail(0);
        }
        lock.lock();
    }
}

void Schedule::run_node(size_t node, const Lane& lane) {
    const Job& job = jobs_[nodes_[node].job];
    auto poll = lane.machine.poll;
    lane.machine.poll = [&, poll] {
        if (failed_ < node) throw Stopped();
        poll();
    };
    try {
        if (nodes_[node].part != WHOLE) {
            const auto& step = std::get<StoreStep>(*nodes_[node].step);
            lane.machine.store_part(step, static_cast<unsigned>(nodes_[node].part), job.inputs[step.input], lane.log);
        } else if (nodes_[node].step) {
            lane.machine.run_step(*job.trigger, *nodes_[node].step, job.inputs, lane.log);
        } else {
            lane.machine.run(*job.trigger, job.inputs, lane.log);
        }
    } catch (...) {
        lane.machine.poll = std::move(poll);
        throw;
    }
    lane.machine.poll = std::move(poll);
}

void Schedule::fail(size_t node) noexcept {
    std::lock_guard guard(mutex_);
    if (node >= failed_) return;
    failed_ = node;
    error_ = std::current_exception();
}

void Schedule::finish(size_t node) {
    for (size_t next : nodes_[node].next) {
        if (!--nodes_[next].waits) ready_.push_back(next);
    }
}

}  // namespace ivme
