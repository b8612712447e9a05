#include "schedule.hpp"

#include <algorithm>
#include <utility>

#include "workers.hpp"

namespace ivme {

namespace {

// Stands for the pool of long floats, which all triggers with such sums change.
constexpr char FLOATS = 0;
constexpr size_t MOST_PIECES = 8;

bool has_floats(const Trigger& trigger) {
    return std::any_of(trigger.registers.begin(), trigger.registers.end(),
                       [](const Delta& delta) { return delta.layout.has_floats; });
}

bool stores(const Trigger& trigger) {
    return std::any_of(trigger.steps.begin(), trigger.steps.end(),
                       [](const Step& step) { return std::holds_alternative<StoreStep>(step); });
}

// Nanoseconds a row, until a step has been seen.
float first_pace(const Step& step) {
    if (const auto* store = std::get_if<StoreStep>(&step)) return 3 * static_cast<float>(store->columns.size());
    if (std::holds_alternative<AddStep>(step)) return 40;
    if (std::holds_alternative<LoadStep>(step)) return 15;
    return std::holds_alternative<JoinStep>(step) ? 10 : 5;
}

}  // namespace

// Steps that share more than their deltas stay together.
bool Schedule::is_one(const Trigger& trigger) {
    return !trigger.overlays.empty() || !trigger.partitions.empty() || has_floats(trigger);
}

bool Schedule::may_be_cut(const Trigger& trigger) {
    return trigger.input_widths.size() == 1 && !is_one(trigger) && trigger.emits.empty() && !stores(trigger);
}

size_t Schedule::pieces_of(size_t rows) { return std::clamp<size_t>(rows / rows_of_piece, 1, MOST_PIECES); }

// Only rows that come are cut: where rows go, entries would go in another order.
size_t Schedule::pieces_of(const Job& job) {
    if (job.loaded) return job.loaded->pieces();
    size_t rows = job.rows(), pieces = pieces_of(rows);
    if (pieces < 2 || job.inputs.size() != 1 || !may_be_cut(*job.trigger)) return 1;
    const int64_t* weights = job.inputs[0].weights;
    return std::all_of(weights, weights + rows, [](int64_t weight) { return weight > 0; }) ? pieces : 1;
}

std::vector<Schedule::Shape> Schedule::shapes_of(const std::vector<Job>& jobs, UndoLog& log) {
    std::vector<Shape> shapes;
    std::vector<const Heap*> seen;
    for (const Job& job : jobs) {
        Shape& shape = shapes.emplace_back(Shape{job.trigger->number, pieces_of(job), {}});
        if (is_one(*job.trigger)) {
            for (const Heap* heap : job.trigger->heaps) seen.push_back(heap);
            continue;
        }
        for (const Step& step : job.trigger->steps) {
            const auto* store = std::get_if<StoreStep>(&step);
            if (!store) continue;
            Heap* heap = store->heap;
            const Input& input = job.inputs[store->input];
            unsigned parts = heap->append_parts();
            bool is_new = std::find(seen.begin(), seen.end(), heap) == seen.end();
            if (is_new && parts > 1) log.touch(heap);
            shape.parts.push_back(is_new && parts > 1 && heap->begin_append(input.weights, input.n) ? parts : 0);
            seen.push_back(heap);
        }
    }
    return shapes;
}

Schedule::Schedule(const std::vector<Job>& jobs, std::vector<Shape> shapes) : shapes_(std::move(shapes)) {
    for (size_t job = 0; job < jobs.size(); ++job) {
        Trigger& trigger = *jobs[job].trigger;
        if (is_one(trigger)) {
            add_whole(job, trigger);
            continue;
        }
        for (size_t piece = 0; piece < shapes_[job].pieces; ++piece) {
            add_steps(job, piece, trigger, trigger.of_piece(piece));
        }
    }
    seen_.clear();
    begin(jobs);
}

// `own` has the deltas of the piece.
void Schedule::add_steps(size_t job, size_t piece, const Trigger& trigger, const Trigger& own) {
    size_t stored = 0;
    for (size_t number = 0; number < trigger.steps.size(); ++number) {
        const Step& step = trigger.steps[number];
        const auto* store = std::get_if<StoreStep>(&step);
        unsigned parts = store ? shapes_[job].parts[stored++] : 0;
        if (!parts) {
            add_node(job, piece, number, WHOLE, store, first_pace(step));
            claim_step(nodes_.size() - 1, step, own);
        }
        // Rows that come are stored in parts, which do not wait for each other.
        for (unsigned part = 0; part < parts; ++part) {
            add_node(job, piece, number, static_cast<int>(part), true, part ? 5 : 10);
            claim(nodes_.size() - 1, store->heap, false);
        }
    }
}

void Schedule::add_node(size_t job, size_t piece, size_t step, int part, bool stores, float pace) {
    nodes_.push_back({job, piece, step, part, stores, pace, 0, {}});
}

void Schedule::add_whole(size_t job, const Trigger& trigger) {
    add_node(job, 0, ALL_STEPS, WHOLE, false, 15 * static_cast<float>(trigger.steps.size()));
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

void Schedule::claim_step(size_t node, const Step& step, const Trigger& own) {
    std::visit(
        [&](const auto& s) {
            using Kind = std::decay_t<decltype(s)>;
            if constexpr (requires { s.origin; }) claim(node, &own.registers[s.origin], false);
            if constexpr (requires { s.target; }) claim(node, &own.registers[s.target], true);
            if constexpr (requires { s.heap; }) claim(node, s.heap, true);
            if constexpr (std::is_same_v<Kind, JoinStep>) {
                for (const Read& read : s.reads) claim(node, read.map, false);
                if (s.fused) claim(node, &own.registers[s.sum_target], true);
            } else if constexpr (std::is_same_v<Kind, AddStep>) {
                claim(node, s.map, true);
                if (s.presence >= 0) claim(node, &own.registers[static_cast<size_t>(s.presence)], true);
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
    ++nodes_[node].to_wait_for;
}

// Cuts the rows into pieces of about the same size.
void Schedule::cut(const std::vector<Job>& jobs) {
    inputs_.resize(jobs.size());
    for (size_t job = 0; job < jobs.size(); ++job) {
        size_t pieces = shapes_[job].pieces;
        inputs_[job].resize(pieces);
        if (pieces == 1) {
            inputs_[job][0] = jobs[job].inputs;
            continue;
        }
        const Input& whole = jobs[job].inputs[0];
        for (size_t piece = 0; piece < pieces; ++piece) inputs_[job][piece] = {whole.piece(piece, pieces)};
    }
}

// Whether a node is a load that was done before.
bool Schedule::is_loaded(const Node& node) const {
    const Job& job = (*jobs_)[node.job];
    if (!job.loaded || node.step == ALL_STEPS) return false;
    const auto* load = std::get_if<LoadStep>(&job.trigger->steps[node.step]);
    return load && job.loaded->has(node.piece, load->target);
}

// How much is left to do one after the other from a node on: what has most of that comes first.
void Schedule::begin(const std::vector<Job>& jobs) {
    jobs_ = &jobs;
    cut(jobs);
    float total = 0, highest = 0;
    for (size_t i = nodes_.size(); i-- > 0;) {
        Node& node = nodes_[i];
        size_t rows = 0;
        for (const Input& input : inputs_[node.job][node.piece]) rows += input.n;
        node.waits = node.to_wait_for;
        node.cost = is_loaded(node) ? 0 : node.pace * static_cast<float>(rows);
        node.height = node.stores ? 0 : behind_time_;
        for (size_t next : node.next) node.height = std::max(node.height, nodes_[next].height);
        node.height += node.cost;
        total += node.cost;
        highest = std::max(highest, node.height);
    }
    is_wide_ = highest < total;
    ready_.clear();
    for (size_t i = 0; i < nodes_.size(); ++i) {
        if (!nodes_[i].waits) ready_.push_back(i);
    }
    running_ = 0;
    steps_left_ = 0;
    for (const Node& node : nodes_) steps_left_ += !node.stores;
    failed_ = NOBODY;
    error_ = nullptr;
}

void Schedule::run(const std::vector<Job>& jobs, const std::vector<Lane>& lanes, const std::function<void()>& behind) {
    behind_ = behind ? &behind : nullptr;
    begin(jobs);
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
            node == BEHIND ? run_behind() : run_node(node, lane);
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
        if (is_first && behind_ && !steps_left_ && failed_ == NOBODY) return BEHIND;
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

void Schedule::run_node(size_t number, const Lane& lane) {
    Node& node = nodes_[number];
    auto poll = lane.machine.poll;
    lane.machine.poll = [&, poll] {
        if (failed_ < number) throw Stopped();
        poll();
    };
    auto begun = std::chrono::steady_clock::now();
    try {
        run_step(node, lane);
    } catch (...) {
        lane.machine.poll = std::move(poll);
        throw;
    }
    lane.machine.poll = std::move(poll);
    // Of what took unusually long, as new memory does, only a part counts.
    std::chrono::duration<float, std::nano> taken = std::chrono::steady_clock::now() - begun;
    if (node.cost > 0) node.pace *= 0.75f + 0.25f * std::min(taken.count() / node.cost, 4.0f);
}

void Schedule::run_behind() {
    auto begun = std::chrono::steady_clock::now();
    (*std::exchange(behind_, nullptr))();
    std::chrono::duration<float, std::nano> taken = std::chrono::steady_clock::now() - begun;
    behind_time_ = 0.75f * behind_time_ + 0.25f * taken.count();
}

void Schedule::run_step(const Node& node, const Lane& lane) {
    Trigger& trigger = *(*jobs_)[node.job].trigger;
    const std::vector<Input>& inputs = inputs_[node.job][node.piece];
    LoadedJob* loaded = (*jobs_)[node.job].loaded;
    if (node.step == ALL_STEPS) return lane.machine.run(trigger, inputs, lane.log, loaded);
    const Step& step = trigger.steps[node.step];
    if (node.part == WHOLE) {
        return lane.machine.run_step(trigger.of_piece(node.piece), step, inputs, lane.log, loaded, node.piece);
    }
    const auto& store = std::get<StoreStep>(step);
    lane.machine.store_part(store, static_cast<unsigned>(node.part), inputs[store.input], lane.log);
}

void Schedule::fail(size_t node) noexcept {
    std::lock_guard guard(mutex_);
    if (node >= failed_) return;
    failed_ = node;
    error_ = std::current_exception();
}

void Schedule::finish(size_t node) {
    if (node == BEHIND) return;
    steps_left_ -= !nodes_[node].stores;
    for (size_t next : nodes_[node].next) {
        if (!--nodes_[next].waits) ready_.push_back(next);
    }
}

}  // namespace ivme
