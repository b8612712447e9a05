#include "compile.hpp"

#include <algorithm>
#include <stdexcept>

namespace ivme {

namespace {

void require(bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(what);
}

// How often each register is read, for every way of reading it.
std::vector<unsigned> count_uses(const Trigger& trigger) {
    std::vector<unsigned> uses(trigger.registers.size(), 0);
    for (const Step& step : trigger.steps) {
        std::visit(
            [&](const auto& s) {
                if constexpr (requires { s.origin; }) ++uses[s.origin];
            },
            step);
    }
    for (const Overlay& overlay : trigger.overlays) ++uses[overlay.pending];
    return uses;
}

}  // namespace

Delta& TriggerBuilder::origin(unsigned number) {
    require(number < defined_.size() && defined_[number], "a step reads a register that no step before it sets");
    return trigger_->registers[number];
}

void TriggerBuilder::define(unsigned number, unsigned arity, const Layout& layout) {
    require(number < defined_.size() && !defined_[number], "a register is set twice");
    require(arity <= Map::MAX_ARITY, "a delta has at most 64 columns");
    defined_[number] = true;
    trigger_->registers[number].shape(arity, layout);
}

void TriggerBuilder::use(Map* map) { trigger_->maps.add(map); }

void TriggerBuilder::load(LoadStep step, const Layout& layout) {
    require(step.lifts.empty() || step.lifts.size() == layout.slots.size(), "a load lifts into every slot or none");
    define(step.target, count_of(step.columns), step.lifts.empty() ? Layout() : layout);
    auto& widths = trigger_->input_widths;
    if (widths.size() <= step.input) widths.resize(step.input + 1, 0);
    unsigned width = widths[step.input];
    for (unsigned column : step.columns) width = std::max(width, column + 1);
    for (auto [column, code] : step.constants) width = std::max(width, column + 1);
    for (auto [one, other] : step.equals) width = std::max({width, one + 1, other + 1});
    for (unsigned column : step.not_null) width = std::max(width, column + 1);
    for (const Lift& lift : step.lifts) {
        bool takes_two = lift.kind == LiftKind::Int128 || lift.kind == LiftKind::Product;
        bool takes_none = lift.kind == LiftKind::None || lift.kind == LiftKind::One;
        if (!takes_none) width = std::max(width, lift.column + (takes_two ? 2 : 1));
    }
    widths[step.input] = width;
    trigger_->steps.push_back(std::move(step));
}

void TriggerBuilder::store(StoreStep step) {
    require(step.columns.size() == step.heap->arity(), "a table takes rows of all its columns");
    auto& widths = trigger_->input_widths;
    if (widths.size() <= step.input) widths.resize(step.input + 1, 0);
    for (unsigned column : step.columns) widths[step.input] = std::max(widths[step.input], column + 1);
    trigger_->heaps.add(step.heap);
    trigger_->steps.push_back(std::move(step));
}

void TriggerBuilder::scan(unsigned target, Map* map, bool indicator) {
    define(target, map->arity(), indicator ? Layout() : map->layout());
    use(map);
    trigger_->steps.push_back(ScanStep{target, map, indicator});
}

Read TriggerBuilder::resolve(const ReadSpec& spec, unsigned known, unsigned added) {
    require(spec.columns.size() == spec.map->arity(), "a read names every column of its map");
    use(spec.map);
    Read read;
    read.map = spec.map;
    read.target = spec.map;
    read.payload = spec.payload;
    std::vector<unsigned> key, values;
    for (unsigned i = 0; i < spec.columns.size(); ++i) {
        if (spec.columns[i] < 0) {
            read.partial = true;
        } else {
            require(static_cast<unsigned>(spec.columns[i]) < known + added, "a read names a column that is not there");
            (static_cast<unsigned>(spec.columns[i]) < known ? key : values).push_back(i);
        }
    }
    require(values.size() == added, "every read of a join knows all its new columns");
    require(!read.partial || !read.payload, "a read that leaves columns open has no payload");
    std::vector<unsigned> of_target;  // for each column of the target, the column of the map
    if (read.partial) {
        const Projection* projection = spec.map->projection(key, values);
        require(projection, "a read needs a projection that its map does not have");
        read.target = projection->map.get();
        of_target = key;
        of_target.insert(of_target.end(), values.begin(), values.end());
    } else {
        for (unsigned i = 0; i < spec.map->arity(); ++i) of_target.push_back(i);
    }
    for (unsigned column : of_target) read.look.push_back(static_cast<unsigned>(spec.columns[column]));
    for (unsigned column : key) read.group_key.push_back(static_cast<unsigned>(spec.columns[column]));
    for (unsigned j = 0; j < added; ++j) {
        auto at = std::find(read.look.begin(), read.look.end(), known + j);
        require(at != read.look.end(), "a read yields a new column twice");
        read.yields.push_back(static_cast<unsigned>(at - read.look.begin()));
    }
    if (added && !key.empty()) {
        std::vector<unsigned> own(key.size());
        for (unsigned i = 0; i < own.size(); ++i) own[i] = read.partial ? i : key[i];
        read.groups = read.target->index(own);
        require(read.groups, "a read needs an index that its map does not have");
    }
    if (spec.pending >= 0) see_pending(read, spec, key, values);
    return read;
}

void TriggerBuilder::see_pending(Read& read, const ReadSpec& spec, const std::vector<unsigned>& key,
                                 const std::vector<unsigned>& values) {
    const Delta& pending = origin(static_cast<unsigned>(spec.pending));
    require(pending.columns.size() == spec.map->arity(), "a pending delta has other columns than its map");
    require(pending.layout == spec.map->layout(), "a pending delta has other payloads than its map");
    read.overlay = static_cast<int>(trigger_->overlays.size());
    trigger_->overlays.push_back(
        {static_cast<unsigned>(spec.pending),
         std::make_unique<Map>(spec.map->arity(), Layout(), spec.map->seed(), spec.map->key())});
    Map& overlay = *trigger_->overlays.back().map;
    if (!values.empty() || read.partial) overlay.add_index(key, values);
    read.pending_target = read.partial ? overlay.projection(key, values)->map.get() : &overlay;
    if (read.groups) read.pending_groups = read.pending_target->index(read.groups->key());
}

void TriggerBuilder::join(unsigned target, unsigned from, unsigned added, const std::vector<ReadSpec>& reads) {
    require(!reads.empty() && reads.size() < 255, "a join reads between 1 and 254 maps");
    const Delta& source = origin(from);
    JoinStep step{target, from, static_cast<unsigned>(source.columns.size()), added, {}, false, 0, {}};
    Layout layout = source.layout;
    for (const ReadSpec& spec : reads) {
        step.reads.push_back(resolve(spec, step.known, added));
        if (!spec.payload || spec.map->layout().plain()) continue;
        require(layout.plain() || layout == spec.map->layout(), "payloads of different kinds cannot be multiplied");
        layout = spec.map->layout();
    }
    define(target, step.known + added, layout);
    trigger_->steps.push_back(std::move(step));
}

void TriggerBuilder::project(unsigned target, unsigned from, std::vector<unsigned> columns) {
    const Delta& source = origin(from);
    for (unsigned column : columns) require(column < source.columns.size(), "a sum keeps a column that is not there");
    define(target, count_of(columns), source.layout);
    bool permutes = columns.size() == source.columns.size();
    for (unsigned c = 0; permutes && c < source.columns.size(); ++c) {
        permutes = std::find(columns.begin(), columns.end(), c) != columns.end();
    }
    trigger_->steps.push_back(ProjectStep{target, from, std::move(columns), permutes, true});
}

void TriggerBuilder::distinct(unsigned target, unsigned from, std::vector<unsigned> columns) {
    const Delta& source = origin(from);
    for (unsigned column : columns) require(column < source.columns.size(), "a column is kept that is not there");
    define(target, count_of(columns), Layout());
    trigger_->steps.push_back(DistinctStep{target, from, std::move(columns)});
}

void TriggerBuilder::exists(unsigned target, unsigned from, Map* map) {
    require(origin(from).columns.size() == map->arity(), "presence is asked of a map with other columns");
    define(target, map->arity(), Layout());
    use(map);
    trigger_->steps.push_back(ExistsStep{target, from, map});
}

void TriggerBuilder::filter(unsigned target, unsigned from, Map* map, std::vector<unsigned> columns, bool present) {
    const Delta& source = origin(from);
    require(columns.size() == map->arity(), "a filter gives a value to every column of its map");
    for (unsigned column : columns)
        require(column < source.columns.size(), "a filter reads a column that is not there");
    define(target, count_of(source.columns), source.layout);
    use(map);
    trigger_->steps.push_back(FilterStep{target, from, map, std::move(columns), present});
}

void TriggerBuilder::add(unsigned from, Map* map, Check check) {
    const Delta& source = origin(from);
    require(source.columns.size() == map->arity(), "a map takes deltas over its own columns");
    require(source.layout == map->layout(), "a map takes deltas with its own kind of payload");
    use(map);
    trigger_->steps.push_back(AddStep{from, map, check});
}

void TriggerBuilder::emit(unsigned from) {
    origin(from);
    trigger_->emits.push_back(from);
    trigger_->steps.push_back(EmitStep{from});
}

void TriggerBuilder::watch(unsigned from, Partition* partition, std::vector<unsigned> columns, unsigned leaf) {
    const Delta& source = origin(from);
    require(columns.size() == partition->arity(), "a watch gives a value to every column of the key");
    for (unsigned column : columns) require(column < source.columns.size(), "a watch reads a column that is not there");
    require(leaf < partition->degrees.size(), "a watch names a leaf that its partition does not have");
    trigger_->partitions.add(partition);
    trigger_->steps.push_back(WatchStep{from, partition, std::move(columns), leaf});
}

// A join whose only reader is a sum hands its rows on chunk by chunk.
void TriggerBuilder::fuse() {
    auto& steps = trigger_->steps;
    std::vector<unsigned> uses = count_uses(*trigger_);
    for (size_t i = 0; i < steps.size(); ++i) {
        auto* join = std::get_if<JoinStep>(&steps[i]);
        if (!join || uses[join->target] != 1) continue;
        for (size_t j = i + 1; j < steps.size(); ++j) {
            auto* sum = std::get_if<ProjectStep>(&steps[j]);
            if (!sum || sum->origin != join->target) continue;
            if (!sum->permutes) {
                join->fused = true;
                join->sum_target = sum->target;
                join->sum_columns = sum->columns;
                steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(j));
            }
            break;
        }
    }
}

namespace {

// Whether a step looks into a map, or changes it.
bool touches(const Step& step, const Map* map) {
    if (const auto* join = std::get_if<JoinStep>(&step)) {
        return std::any_of(join->reads.begin(), join->reads.end(), [&](const Read& read) { return read.map == map; });
    }
    return std::visit(
        [&](const auto& s) {
            if constexpr (requires { s.map; }) return s.map == map;
            return false;
        },
        step);
}

}  // namespace

// Presence is judged against the map as it was, which the map knows when it takes the delta: if no step between the two
// touches it, it takes the delta at once, and the entries are found only once.
void TriggerBuilder::fuse_presence() {
    auto& steps = trigger_->steps;
    for (size_t i = 0; i < steps.size(); ++i) {
        const auto* exists = std::get_if<ExistsStep>(&steps[i]);
        if (!exists) continue;
        for (size_t j = i + 1; j < steps.size(); ++j) {
            auto* add = std::get_if<AddStep>(&steps[j]);
            if (add && add->origin == exists->origin && add->map == exists->map) {
                AddStep fused = *add;
                fused.presence = static_cast<int>(exists->target);
                steps[i] = fused;
                steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(j));
                break;
            }
            if (touches(steps[j], exists->map)) break;
        }
    }
}

// A load that only sums read need not be consolidated: the sums do that. How many rows they see then depends on the
// columns that are loaded, so they are not counted.
void TriggerBuilder::skip_consolidation() {
    std::vector<unsigned> uses = count_uses(*trigger_);
    for (Step& step : trigger_->steps) {
        auto* load = std::get_if<LoadStep>(&step);
        if (!load) continue;
        std::vector<ProjectStep*> projects;
        bool permuted = false;
        for (Step& other : trigger_->steps) {
            auto* project = std::get_if<ProjectStep>(&other);
            if (!project || project->origin != load->target) continue;
            projects.push_back(project);
            permuted |= project->permutes;
        }
        if (projects.size() != uses[load->target]) continue;
        for (ProjectStep* project : projects) project->counts = false;
        load->consolidate = permuted;
    }
}

std::unique_ptr<Trigger> TriggerBuilder::finish() {
    skip_consolidation();
    fuse();
    fuse_presence();
    return std::move(trigger_);
}

}  // namespace ivme
