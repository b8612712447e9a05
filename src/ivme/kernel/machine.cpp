#include "machine.hpp"

#include <numeric>

#include "lifted_sums.hpp"

namespace ivme {

namespace {

template <class... Visitors>
struct Overloaded : Visitors... {
    using Visitors::operator()...;
};
// Clang before 17 does not deduce it for aggregates.
template <class... Visitors>
Overloaded(Visitors...) -> Overloaded<Visitors...>;

// Takes down an entry whose count leaves or reaches zero.
void appeared(const int64_t* key, unsigned arity, int64_t before, int64_t change, Delta& presence) {
    bool was = before != 0, is = before + change != 0;
    if (was == is) return;
    for (unsigned c = 0; c < arity; ++c) presence.columns[c][presence.n] = key[c];
    presence.payloads[presence.n++] = is ? 1 : -1;
}

// The rows between `start` and `end` that a load takes, by their places behind `start`; how many they are. A processor
// that guesses which rows pass is often wrong, so each condition is a loop without branches.
unsigned select_rows(const LoadStep& step, const Input& input, size_t start, size_t end, uint32_t* kept) {
    auto count = static_cast<unsigned>(end - start);
    std::iota(kept, kept + count, 0U);
    auto keep = [&](auto holds) {
        unsigned left = 0;
        for (unsigned i = 0; i < count; ++i) {
            uint32_t row = kept[i];
            kept[left] = row;
            left += holds(row);
        }
        count = left;
    };
    const int64_t* weights = input.weights + start;
    bool has_zeroes = std::find(weights, weights + count, 0) != weights + count;
    if (has_zeroes) keep([&](uint32_t row) { return weights[row] != 0; });
    for (auto [column, wanted] : step.constants) {
        keep([codes = input.columns[column] + start, code = wanted](uint32_t row) { return codes[row] == code; });
    }
    for (auto [one, other] : step.equals) {
        const int64_t *codes = input.columns[one] + start, *others = input.columns[other] + start;
        keep([&](uint32_t row) { return codes[row] == others[row]; });
    }
    for (unsigned column : step.not_null) {
        keep([codes = input.columns[column] + start](uint32_t row) { return codes[row] != NULL_CODE; });
    }
    return count;
}

std::vector<const int64_t*> stored_columns(const StoreStep& step, const Input& input) {
    std::vector<const int64_t*> columns;
    for (unsigned column : step.columns) columns.push_back(input.columns[column]);
    return columns;
}

}  // namespace

void Machine::run(Trigger& trigger, const std::vector<Input>& inputs, UndoLog& log, LoadedJob* loaded) {
    for (auto& overlay : trigger.overlays) overlay.built = false;
    size_t pieces = loaded ? loaded->pieces() : 1;
    std::vector<Input> cut;
    for (size_t piece = 0; piece < pieces; ++piece) {
        if (pieces > 1) cut = {inputs[0].piece(piece, pieces)};
        Trigger& own = trigger.of_piece(piece);
        for (const Step& step : trigger.steps) run_step(own, step, pieces > 1 ? cut : inputs, log, loaded, piece);
    }
}

void Machine::run_step(Trigger& own, const Step& step, const std::vector<Input>& inputs, UndoLog& log,
                       LoadedJob* loaded, size_t piece) {
    const auto* load = loaded ? std::get_if<LoadStep>(&step) : nullptr;
    if (!load || !loaded->take(piece, load->target, own.registers[load->target])) {
        return run_step(own, step, inputs, log);
    }
    operations += inputs[load->input].n;
    ++loads_taken;
}

void Machine::run_step(Trigger& own, const Step& step, const std::vector<Input>& inputs, UndoLog& log) {
    auto& registers = own.registers;
    std::visit(Overloaded{
                   [&](const LoadStep& s) { load(s, inputs[s.input], registers[s.target]); },
                   [&](const StoreStep& s) { store(s, inputs[s.input], log); },
                   [&](const ScanStep& s) { scan(s, registers[s.target]); },
                   [&](const JoinStep& s) { join(s, own); },
                   [&](const ProjectStep& s) { project(s, registers[s.origin], registers[s.target]); },
                   [&](const DistinctStep& s) { distinct(s, registers[s.origin], registers[s.target]); },
                   [&](const ExistsStep& s) { exists(s, registers[s.origin], registers[s.target]); },
                   [&](const FilterStep& s) { filter(s, registers[s.origin], registers[s.target]); },
                   [&](const AddStep& s) {
                       add(s, registers[s.origin], s.presence < 0 ? nullptr : &registers[s.presence], log);
                   },
                   [](const EmitStep&) {},
                   [&](const WatchStep& s) { watch(s, registers[s.origin], log); },
               },
               step);
}

void Machine::poll_interrupt() {
    if (++breaths_ % 64) return;
    auto now = std::chrono::steady_clock::now();
    if (now - last_poll_ < std::chrono::milliseconds(50)) return;
    last_poll_ = now;
    poll();
}

void Machine::load(const LoadStep& step, const Input& input, Delta& target) {
    operations += input.n;
    bool sum = step.consolidate && input.n > 1;
    Delta& loaded = sum ? chunk_ : target;
    if (sum) {
        chunk_.shape(count_of(target.columns), target.layout);
        consolidator_.begin(&target, std::min<size_t>(input.n, 1 << 14));  // of many rows, fewer may be different
    }
    loaded.clear();
    std::vector<unsigned> all;
    if (sum) {
        for (unsigned c = 0; c < target.columns.size(); ++c) all.push_back(c);
    }
    unsigned words = target.layout.words;
    bool adds = sum && adds_up(target.layout, step.lifts);
    for (size_t start = 0; start < input.n; start += CHUNK) {
        poll_interrupt();
        size_t end = std::min<size_t>(input.n, start + CHUNK);
        if (sum) chunk_.clear();
        loaded.reserve(loaded.n + end - start);
        uint32_t* kept = candidates_.selected;
        unsigned count = select_rows(step, input, start, end, kept);
        bool is_all = count == end - start;
        if (adds && load_sums(step, input, start, count)) {
            consolidator_.add(chunk_, all, 0, chunk_.n);
            continue;
        }
        size_t first = loaded.extend(count);
        for (unsigned c = 0; c < step.columns.size(); ++c) {
            const int64_t* from = input.columns[step.columns[c]] + start;
            int64_t* to = loaded.columns[c].data() + first;
            if (is_all) {
                std::copy_n(from, count, to);
            } else {
                for (unsigned i = 0; i < count; ++i) to[i] = from[kept[i]];
            }
        }
        for (unsigned i = 0; i < count; ++i) {
            loaded.payload(first + i)[0] = input.weights[start + kept[i]];
        }
        LiftedRows rows{input, start, kept, count, loaded.payload(first), words};
        unsigned at = 1;
        for (unsigned s = 0; s < step.lifts.size(); ++s) {
            Slot slot = target.layout.slots[s];
            lift_column(step.lifts[s], slot, rows, at, target.layout.pool);
            at += width(slot);
        }
        if (sum) consolidator_.add(chunk_, all, 0, chunk_.n);
    }
    if (sum) consolidator_.end();
}

// Rows of few groups are summed on the way into the chunk; false if there are many, or a sum of weights does not fit.
bool Machine::load_sums(const LoadStep& step, const Input& input, size_t start, unsigned count) {
    const uint32_t* kept = candidates_.selected;
    const int64_t* columns[64];
    unsigned arity = count_of(step.columns);
    for (unsigned c = 0; c < arity; ++c) columns[c] = input.columns[step.columns[c]] + start;
    if (!row_groups_.find(columns, arity, kept, count, consolidator_.seed())) return false;
    unsigned groups = row_groups_.groups;
    chunk_.extend(groups);
    for (unsigned c = 0; c < arity; ++c) {
        for (unsigned i = 0; i < groups; ++i) chunk_.columns[c][i] = columns[c][row_groups_.firsts[i]];
    }
    const Layout& layout = chunk_.layout;
    int64_t* payloads = chunk_.payloads.data();
    LiftedSums sums{input, start, kept, row_groups_.places, count, groups, payloads, layout.words};
    if (!sums.sum_weights()) {
        chunk_.clear();
        return false;
    }
    unsigned at = 1;
    for (unsigned s = 0; s < step.lifts.size(); ++s) {
        sums.sum_column(step.lifts[s], layout.slots[s], at);
        at += width(layout.slots[s]);
    }
    return true;
}

void Machine::net(const std::vector<const int64_t*>& columns, const int64_t* weights, size_t n, Delta& target) {
    operations += n;
    consolidator_.begin(&target, n);
    consolidator_.add_rows(columns.data(), count_of(columns), weights, 1, n);
    consolidator_.end();
}

void Machine::store(const StoreStep& step, const Input& input, UndoLog& log) {
    operations += input.n;
    log.touch(step.heap);
    step.heap->add(stored_columns(step, input).data(), input.weights, input.n, step.may_be_negative);
}

void Machine::store_part(const StoreStep& step, unsigned part, const Input& input, UndoLog& log) {
    if (!part) operations += input.n;
    log.touch(step.heap);
    step.heap->append_part(part, stored_columns(step, input).data(), input.weights, input.n);
}

void Machine::scan(const ScanStep& step, Delta& target) {
    const Map& map = *step.map;
    operations += map.size();
    ++scans;
    target.clear();
    target.reserve(map.size());
    for (uint32_t id = 0; id < map.high(); ++id) {
        if (!map.alive(id)) continue;
        size_t at = target.n++;
        for (unsigned c = 0; c < map.arity(); ++c) target.columns[c][at] = map.row(id)[c];
        if (step.indicator) {
            target.payload(at)[0] = 1;
        } else {
            std::copy_n(map.payload(id), target.layout.words, target.payload(at));
        }
    }
}

void Machine::project(const ProjectStep& step, const Delta& origin, Delta& target) {
    if (!origin.n) return target.clear();  // of a trigger of many parts, most are without rows
    if (step.counts) operations += origin.n;
    if (!step.permutes && origin.n != 1) {
        consolidator_.begin(&target, std::min<size_t>(origin.n, 1 << 16));
        for (size_t start = 0; start < origin.n; start += 1 << 14) {
            poll_interrupt();
            consolidator_.add(origin, step.columns, start, std::min<size_t>(1 << 14, origin.n - start));
        }
        consolidator_.end();
        return;
    }
    target.clear();
    target.extend(origin.n);
    for (unsigned c = 0; c < step.columns.size(); ++c) {
        std::copy_n(origin.columns[step.columns[c]].data(), origin.n, target.columns[c].data());
    }
    std::copy_n(origin.payloads.data(), origin.n * origin.layout.words, target.payloads.data());
}

void Machine::distinct(const DistinctStep& step, const Delta& origin, Delta& target) {
    operations += origin.n;
    consolidator_.begin(&target, std::min<size_t>(origin.n, 1 << 16));
    Array<int64_t> ones;
    ones.resize(std::min<size_t>(origin.n, 1 << 14));
    std::fill_n(ones.data(), ones.size(), 1);
    std::vector<const int64_t*> from(step.columns.size());
    for (size_t start = 0; start < origin.n; start += ones.size()) {
        poll_interrupt();
        for (size_t c = 0; c < from.size(); ++c) from[c] = origin.columns[step.columns[c]].data() + start;
        consolidator_.add_rows(from.data(), count_of(from), ones.data(), 1, std::min(ones.size(), origin.n - start));
    }
    consolidator_.end();
    std::fill_n(target.payloads.data(), target.n, 1);
}

void Machine::exists(const ExistsStep& step, const Delta& origin, Delta& target) {
    operations += origin.n;
    target.clear();
    target.reserve(origin.n);
    KeyColumns columns(origin);
    probe_keys(
        *step.map, block_, origin.n, [&](size_t row, int64_t* key) { columns.gather(row, key); },
        [&](size_t row, const int64_t* key, uint32_t tag) {
            uint32_t id = step.map->find(key, tag);
            int64_t before = id == NIL ? 0 : step.map->payload(id)[0], after;
            if (add_overflows(before, origin.payload(row)[0], &after)) throw Overflow();
            if ((before == 0) == (after == 0)) return;
            for (unsigned c = 0; c < columns.arity; ++c) target.columns[c][target.n] = key[c];
            target.payloads[target.n++] = before == 0 ? 1 : -1;
        });
}

void Machine::filter(const FilterStep& step, const Delta& origin, Delta& target) {
    target.clear();
    if (!origin.n) return;
    if (!step.map->size()) {
        if (!step.present) target.append(origin);
        return;
    }
    operations += origin.n;
    target.reserve(origin.n);
    KeyColumns columns(origin, step.columns);
    probe_keys(
        *step.map, block_, origin.n, [&](size_t row, int64_t* key) { columns.gather(row, key); },
        [&](size_t row, const int64_t* key, uint32_t tag) {
            if ((step.map->find(key, tag) != NIL) != step.present) return;
            for (unsigned c = 0; c < origin.columns.size(); ++c) target.columns[c][target.n] = origin.columns[c][row];
            std::copy_n(origin.payload(row), origin.layout.words, target.payload(target.n));
            ++target.n;
        });
}

void Machine::add(const AddStep& step, const Delta& origin, Delta* presence, UndoLog& log) {
    operations += presence ? 2 * origin.n : origin.n;
    if (presence) {
        presence->clear();
        presence->reserve(origin.n);
    }
    if (!origin.n) return;
    Map& map = *step.map;
    unsigned arity = map.arity();
    map.make_room(origin.n);
    log.open(&map, origin.n);
    ++map.version;
    KeyColumns columns(origin);
    bool is_tagged = origin.tagged && !map.is_keyed();  // by all columns
    size_t done = 0;
    try {
        for (size_t start = 0; start < origin.n; start += BLOCK) {
            unsigned count = static_cast<unsigned>(std::min<size_t>(BLOCK, origin.n - start));
            if (start % (BLOCK * 64) == 0) poll_interrupt();
            for (unsigned i = 0; i < count; ++i) {
                int64_t* key = block_.keys + i * arity;
                columns.gather(start + i, key);
                block_.tags[i] = is_tagged ? origin.tags[start + i] : map.tag(key);
                map.prefetch(block_.tags[i]);
            }
            if (count > 4) map.warm(block_.keys, block_.tags, origin.payload(start), count);
            for (unsigned i = 0; i < count; ++i) {
                const int64_t* key = block_.keys + i * arity;
                const int64_t* change = origin.payload(start + i);
                int64_t* undo = log.next();
                map.add(key, block_.tags[i], change, undo + arity);
                std::copy_n(key, arity, undo);
                log.wrote(&map);
                ++done;
                if (presence) appeared(key, arity, undo[arity], change[0], *presence);
                if (step.check == Check::none) continue;
                int64_t left = undo[arity] + change[0];
                if (left < 0) throw BrokenCheck("present", {key, key + arity});
                if (left > 1 && step.check == Check::unique) throw BrokenCheck("unique", {key, key + arity});
            }
        }
    } catch (...) {
        log.close(&map, done);
        throw;
    }
    log.close(&map, done);
}

void Machine::overlay(Trigger& trigger, Overlay& overlay) {
    const Delta& pending = trigger.registers[overlay.pending];
    operations += pending.n;
    if (overlay.built) return;
    overlay.map->clear();
    KeyColumns columns(pending);
    int64_t old;
    probe_keys(
        *overlay.map, block_, pending.n, [&](size_t row, int64_t* key) { columns.gather(row, key); },
        [&](size_t row, const int64_t* key, uint32_t tag) {
            int64_t number = static_cast<int64_t>(row) + 1;
            overlay.map->add(key, tag, &number, &old);
        });
    overlay.built = true;
}

}  // namespace ivme
