#include "union.hpp"

#include <algorithm>

#include "probe.hpp"

namespace ivme {

namespace {

// A trigger with registers of its own, whose long floats are in another pool.
Trigger copy_of(const Trigger& trigger, FloatPool& floats) {
    Trigger copy;
    copy.steps = trigger.steps;
    copy.emits = trigger.emits;
    copy.registers.resize(trigger.registers.size());
    for (size_t i = 0; i < copy.registers.size(); ++i) {
        const Delta& from = trigger.registers[i];
        copy.registers[i].shape(static_cast<unsigned>(from.columns.size()), Layout(from.layout.slots, &floats));
    }
    return copy;
}

}  // namespace

Union::~Union() = default;

uint64_t Union::version() const {
    uint64_t total = 0;
    for (const Branch& branch : branches) {
        for (const auto& reader : branch.segments) total += reader->version();
        for (const auto& reader : branch.guards) total += reader->version();
        if (!branch.probe) continue;
        for (const Map* map : branch.probe->maps) total += map->version;
    }
    return total;
}

std::vector<const Map*> Union::maps() const {
    std::vector<const Map*> all;
    for (const Branch& branch : branches) {
        for (const auto& reader : branch.segments) all.insert(all.end(), reader->maps.begin(), reader->maps.end());
        for (const auto& reader : branch.guards) all.insert(all.end(), reader->maps.begin(), reader->maps.end());
    }
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
}

std::shared_ptr<Union> Union::over(const Map& changed, const Map& old) const {
    auto made = std::make_shared<Union>(seed);
    made->inputs = inputs;
    made->outputs = outputs;
    made->exact = exact;
    made->asked = asked;
    made->layout = layout;
    for (const Branch& branch : branches) {
        Branch& copy = made->branches.emplace_back();
        for (const auto& reader : branch.segments) copy.segments.push_back(reader->over(changed, old));
        for (const auto& reader : branch.guards) copy.guards.push_back(reader->over(changed, old));
    }
    return made;
}

void Union::shape(Block& block) const {
    block.columns.resize(outputs);
    if (!disjoint) return;
    const auto& extremes = branches[0].segments[0]->extremes;
    block.extremes.resize(extremes.size());
    for (const Extreme& extreme : extremes) block.listed |= extreme.listed();
}

Prober::Prober(const Union& plan) : machine_(plan.seed), consolidator_(plan.seed) {
    for (const Branch& branch : plan.branches) probes_.push_back(copy_of(*branch.probe, floats_));
    unsigned width = static_cast<unsigned>(plan.asked.size()) + plan.outputs;
    for (unsigned c = 0; c < width; ++c) columns_.push_back(c);
    sums_.shape(width, Layout(plan.layout.slots, &floats_));
}

void Prober::take(const std::vector<const int64_t*>& keys, size_t n) {
    for (size_t had = ones_.size(); had < n; ++had) ones_.push(1);
    inputs_[0].n = n;
    inputs_[0].columns = keys;
    inputs_[0].weights = ones_.data();
}

std::vector<const Delta*> Prober::pieces(const std::vector<const int64_t*>& keys, size_t n, uint64_t& operations) {
    take(keys, n);
    uint64_t before = machine_.operations;
    machine_.run(probes_[0], inputs_, log_);
    operations += machine_.operations - before;
    std::vector<const Delta*> found;
    for (unsigned number : probes_[0].emits) found.push_back(&probes_[0].registers[number]);
    return found;
}

const Delta& Prober::sums(const std::vector<const int64_t*>& keys, size_t n, uint64_t& operations) {
    take(keys, n);
    uint64_t before = machine_.operations;
    consolidator_.begin(&sums_, n);
    for (Trigger& probe : probes_) {
        machine_.run(probe, inputs_, log_);
        const Delta& found = probe.registers[probe.emits[0]];
        consolidator_.add(found, columns_, 0, found.n);
    }
    consolidator_.end();
    operations += machine_.operations - before;
    return sums_;
}

void Prober::forget() noexcept {
    for (Trigger& probe : probes_) {
        for (Delta& delta : probe.registers) delta.trim();
    }
    sums_.trim();
    machine_.trim();
    consolidator_.trim();
    floats_.clear();
}

UnionCursor::~UnionCursor() { give_back(); }

void UnionCursor::give_back() noexcept {
    if (!prober_) return;
    prober_->forget();
    std::lock_guard lock(plan_->mutex);
    if (plan_->idle.size() < plan_->idle.capacity()) plan_->idle.push_back(std::move(prober_));
}

Prober& UnionCursor::prober() {
    if (prober_) return *prober_;
    {
        std::lock_guard lock(plan_->mutex);
        if (!plan_->idle.empty()) {
            prober_ = std::move(plan_->idle.back());
            plan_->idle.pop_back();
        } else {
            plan_->idle.reserve(4);  // so that giving one back cannot fail
        }
    }
    if (!prober_) prober_ = std::make_unique<Prober>(*plan_);
    return *prober_;
}

void UnionCursor::open(std::vector<const int64_t*> inputs, size_t requests) {
    inputs_ = std::move(inputs);
    requests_ = requests;
    next_ = 0;
    block_ = SMALLEST;
    rows_.reset();
    levels_.clear();
    seen_.reset();
    answers_.reset();
    taken_ = 0;
    pieces_.reset();
}

void UnionCursor::go_on_with(const Union& plan) {
    plan_ = &plan;
    if (rows_) rows_->go_on_with(*plan.branches[next_ - 1].segments[0]);
}

bool UnionCursor::fill(Block& block, size_t limit, uint64_t& operations) {
    floats_.clear();
    if (plan_->disjoint) return fill_disjoint(block, limit, operations);
    if (!plan_->pieces.empty()) {
        find_pieces(operations);
        return pieces_->fill(block, limit, floats_, operations);
    }
    if (plan_->answered && plan_->outputs) return fill_answered(block, limit, operations);
    if (prober_) prober_->forget();
    return fill_probed(block, limit, operations);
}

// The requests that have a match for every guard of a branch.
Array<int64_t> UnionCursor::passing(const Branch& branch, uint64_t& operations) const {
    std::vector<std::unique_ptr<Enumerator>> guards;
    for (const auto& guard : branch.guards) guards.push_back(std::make_unique<Enumerator>(*guard));
    Array<int64_t> numbers;
    std::vector<const int64_t*> inputs(inputs_.size());
    for (size_t request = 0; request < requests_; ++request) {
        for (size_t v = 0; v < inputs.size(); ++v) inputs[v] = inputs_[v] + request;
        bool passes = true;
        for (size_t g = 0; g < guards.size() && passes; ++g) {
            Block found;
            found.shape(*branch.guards[g]);
            guards[g]->open(inputs, 1);
            guards[g]->fill(found, 1, operations);
            passes = found.n > 0;
        }
        if (passes) numbers.push(static_cast<int64_t>(request));
    }
    return numbers;
}

// Goes on to the next branch whose guards let the only request pass; false if there is none.
bool UnionCursor::next_branch(uint64_t& operations) {
    while (next_ < plan_->branches.size()) {
        const Branch& branch = plan_->branches[next_++];
        if (branch.guards.empty() || passing(branch, operations).size()) return true;
    }
    return false;
}

bool UnionCursor::fill_disjoint(Block& block, size_t limit, uint64_t& operations) {
    for (size_t stop = block.n + limit; block.n < stop;) {
        if (!rows_) {
            if (!next_branch(operations)) return false;
            rows_.emplace(*plan_->branches[next_ - 1].segments[0], &floats_);
            rows_->open(inputs_, requests_);
        }
        if (!rows_->fill(block, stop - block.n, operations)) rows_.reset();
    }
    return true;
}

// The first call finds all rows, and each one hands some of them on.
bool UnionCursor::fill_answered(Block& block, size_t limit, uint64_t& operations) {
    if (!answers_) {
        plan_->shape(answers_.emplace());
        read_answers(*answers_, operations);
    }
    size_t n = std::min(limit, answers_->n - taken_);
    unsigned words = plan_->layout.words;
    for (size_t c = 0; c < block.columns.size(); ++c) {
        append(block.columns[c], answers_->columns[c].data() + taken_, n);
    }
    append(block.payloads, answers_->payloads.data() + taken_ * words, n * words);
    block.n += n;
    taken_ += n;
    return taken_ < answers_->n;
}

void UnionCursor::find_pieces(uint64_t& operations) {
    if (pieces_) return;
    std::vector<const int64_t*> keys;
    std::vector<int64_t> request;
    for (unsigned input : plan_->asked) {
        keys.push_back(inputs_[input]);
        request.push_back(*inputs_[input]);
    }
    auto found = prober().pieces(keys, 1, operations);
    pieces_ = std::make_unique<PieceRows>(plan_->pieces, found, plan_->layout, plan_->seed, operations);
    pieces_->open(request.data());
    if (!plan_->layout.has_floats) give_back();  // long floats of the pieces would go with it
}

void UnionCursor::mark_codes(CodeMarks& marks) const {
    if (pieces_) pieces_->mark_codes(marks);
}

// The pieces of all distinct requests are found at once, and the rows of each request are read in turn.
void UnionCursor::read_pieces(Block& block, uint64_t& operations) {
    Distinct asked(static_cast<unsigned>(plan_->asked.size()), plan_->seed);
    find_distinct(asked);
    auto found = prober().pieces(addresses(asked.keys), asked.known.high(), operations);
    PieceRows rows(plan_->pieces, found, plan_->layout, plan_->seed, operations);
    for (size_t request = 0; request < requests_; ++request) {
        size_t start = block.n;
        rows.open(asked.known.key(asked.groups[request]));
        rows.fill(block, ~size_t{0} - block.n, floats_, operations);
        if (!block.numbered) continue;
        block.requests.resize(block.n);
        std::fill_n(block.requests.data() + start, block.n - start, static_cast<int64_t>(request));
    }
}

bool UnionCursor::fill_probed(Block& block, size_t limit, uint64_t& operations) {
    if (!plan_->outputs) {
        if (next_++) return false;
        append_probed(block, {}, 1, operations);
        return false;
    }
    if (!seen_) seen_.emplace(plan_->outputs, plan_->seed);
    for (size_t stop = block.n + limit; block.n < stop;) {
        if (levels_.empty()) {
            if (!next_branch(operations)) return false;
            begin_levels(plan_->branches[next_ - 1]);
        }
        unsigned last = static_cast<unsigned>(levels_.size()) - 1;
        if (!find(last, std::min(block_, stop - block.n), operations)) {
            levels_.clear();
            continue;
        }
        Block& found = levels_[last]->found;
        append_probed(block, addresses(found.columns), found.n, operations);
    }
    return true;
}

void UnionCursor::begin_levels(const Branch& branch) {
    for (const auto& reader : branch.segments) {
        levels_.push_back(std::make_unique<Level>(*reader, floats_, plan_->seed));
    }
    levels_[0]->rows.open(inputs_, 1);
    levels_[0]->open = true;
}

// Finds the next tuples of a segment that are new, at most so many; false at the end.
bool UnionCursor::find(unsigned level, size_t most, uint64_t& operations) {
    Level& here = *levels_[level];
    GroupTable& seen = level + 1 == levels_.size() ? *seen_ : here.seen;
    for (;;) {
        while (here.open) {
            here.found.n = 0;
            here.open = here.rows.fill(here.found, most, operations);
            block_ = std::min(block_ * 2, LARGEST);
            keep_new(here.found, seen);
            if (here.found.n) return true;
        }
        if (!level || !find(level - 1, most, operations)) return false;
        const Block& before = levels_[level - 1]->found;
        here.given.clear();
        for (const int64_t* input : inputs_) {
            here.given.emplace_back().resize(before.n);
            std::fill_n(here.given.back().data(), before.n, *input);
        }
        for (const auto& column : before.columns) append(here.given.emplace_back(), column.data(), before.n);
        here.rows.open(addresses(here.given), before.n);
        here.open = true;
    }
}

void UnionCursor::keep_new(Block& found, GroupTable& seen) {
    KeyBlock block;
    size_t kept = 0;
    probe_keys(
        seen, block, found.n,
        [&](size_t row, int64_t* key) {
            for (const auto& column : found.columns) *key++ = column[row];
        },
        [&](size_t row, const int64_t* key, uint32_t tag) {
            if (seen.find(key, tag) != NIL) return;
            seen.insert(key, tag, 0);
            for (auto& column : found.columns) column[kept] = column[row];
            ++kept;
        });
    found.n = kept;
}

// Appends the given outputs of the only request that are there, with their payloads.
void UnionCursor::append_probed(Block& block, const std::vector<const int64_t*>& outputs, size_t n,
                                uint64_t& operations) {
    std::vector<Array<int64_t>> given(plan_->asked.size());
    for (size_t i = 0; i < given.size(); ++i) {
        given[i].resize(n);
        std::fill_n(given[i].data(), n, *inputs_[plan_->asked[i]]);
    }
    std::vector<const int64_t*> keys = addresses(given);
    keys.insert(keys.end(), outputs.begin(), outputs.end());
    const Delta& sums = prober().sums(keys, n, operations);
    unsigned words = plan_->layout.words;
    for (auto& column : block.columns) column.resize(block.n + sums.n);
    block.payloads.resize((block.n + sums.n) * words);
    for (size_t row = 0; row < sums.n; ++row) {
        if (!sums.payload(row)[0]) continue;
        for (size_t c = 0; c < block.columns.size(); ++c) {
            block.columns[c][block.n] = sums.columns[given.size() + c][row];
        }
        std::copy_n(sums.payload(row), words, block.payloads.data() + block.n * words);
        ++block.n;
    }
}

}  // namespace ivme
