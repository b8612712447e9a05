// Programs from Python: tuples of numbers become steps and readers. `_kernel.pyi` says what the tuples hold.
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <string_view>

#include "bind.hpp"

namespace ivme {

namespace {

using Numbers = std::vector<unsigned>;
using Ids = std::vector<size_t>;

LiftKind parse_lift(const std::string& kind) {
    if (kind == "none") return LiftKind::None;
    if (kind == "one") return LiftKind::One;
    if (kind == "count") return LiftKind::Count;
    if (kind == "int") return LiftKind::Int;
    if (kind == "float") return LiftKind::Float;
    if (kind == "wide") return LiftKind::Int128;
    throw std::invalid_argument(
        "a lift is none, one, count, int, float or wide, the square of one of the last three, or a float product, "
        "not " +
        kind);
}

Check parse_check(const std::string& check) {
    if (check.empty()) return Check::none;
    if (check == "present") return Check::present;
    if (check == "unique") return Check::unique;
    throw std::invalid_argument("a check is empty, present or unique, not " + check);
}

template <class T>
T field(const nb::tuple& step, size_t i) {
    if (i >= step.size()) throw std::invalid_argument("a step has too few fields");
    return nb::cast<T>(step[i]);
}

LoadStep parse_load(const nb::tuple& step) {
    LoadStep load{field<unsigned>(step, 1), field<unsigned>(step, 2), field<Numbers>(step, 3), {}, {}, {}, {}, true};
    load.constants = field<std::vector<std::pair<unsigned, int64_t>>>(step, 4);
    load.equals = field<std::vector<std::pair<unsigned, unsigned>>>(step, 5);
    load.not_null = field<Numbers>(step, 6);
    for (auto& [kind, column] : field<std::vector<std::pair<std::string, unsigned>>>(step, 7)) {
        constexpr std::string_view square = " square", joint = "joint ";
        if (kind.starts_with(joint)) kind.erase(0, joint.size());  // the slot says what that means
        if (kind == "float product") {
            load.lifts.push_back({LiftKind::Product, column, false});
            continue;
        }
        bool is_square = kind.ends_with(square);
        load.lifts.push_back(
            {parse_lift(is_square ? kind.substr(0, kind.size() - square.size()) : kind), column, is_square});
    }
    return load;
}

std::vector<ReadSpec> parse_reads(Kernel& kernel, const nb::handle& given) {
    std::vector<ReadSpec> reads;
    for (const auto& [map, columns, payload, pending] :
         nb::cast<std::vector<std::tuple<size_t, std::vector<int>, bool, int>>>(given)) {
        reads.push_back({&kernel.map(map), columns, payload, pending});
    }
    return reads;
}

void require(bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(what);
}

constexpr std::pair<std::string_view, Extreme::Function> ORDERED[] = {
    {"min", Extreme::Function::Min},
    {"max", Extreme::Function::Max},
    {"percentile_cont", Extreme::Function::Continuous},
    {"percentile_disc", Extreme::Function::Discrete},
};

struct ReaderBuilder {
    Kernel& kernel;
    Reader& reader;
    std::vector<unsigned> known_at;  // for each variable, after how many loops it is known

    const Map* use(size_t id) {
        Map* map = &kernel.map(id);
        reader.maps.add(map);
        return map;
    }

    void check(const Map* map, const Numbers& columns, unsigned level) {
        require(columns.size() == map->arity(), "a read names every column of its map");
        for (unsigned variable : columns) {
            require(variable < known_at.size() && known_at[variable] <= level, "a read uses a variable too early");
        }
    }

    void guard(size_t id, const Numbers& columns, const Numbers& key) {
        Guard guard{use(id), nullptr, key};
        require(columns.size() == key.size(), "a guard has an input for each column of its key");
        for (unsigned input : key) require(input < reader.inputs, "a guard's key is of inputs");
        if (!columns.empty() && columns.size() < guard.map->arity()) {
            guard.groups = guard.map->index(columns);
            require(guard.groups, "a guard needs an index that its map does not have");
        } else {
            for (unsigned i = 0; i < columns.size(); ++i) require(columns[i] == i, "a whole key is in order");
        }
        reader.guards.push_back(std::move(guard));
    }

    void loop(size_t id, const Numbers& columns, const Numbers& fresh) {
        Loop loop;
        loop.map = use(id);
        unsigned level = count_of(reader.loops) + 1;
        for (unsigned variable : fresh) {
            require(variable < known_at.size(), "a loop yields a variable that is not there");
            known_at[variable] = level;
        }
        check(loop.map, columns, level);
        Numbers key;
        for (unsigned i = 0; i < columns.size(); ++i) {
            if (std::find(fresh.begin(), fresh.end(), columns[i]) != fresh.end()) {
                loop.yields.emplace_back(i, columns[i]);
            } else {
                key.push_back(i);
                loop.key.push_back(columns[i]);
            }
        }
        loop.checks = fresh.empty();
        if (!loop.checks && !key.empty()) {
            loop.groups = loop.map->index(key);
            require(loop.groups, "a loop needs an index that its map does not have");
        }
        reader.loops.push_back(std::move(loop));
        loops.push_back(columns);
    }

    void factor(size_t id, const Numbers& columns) {
        Factor factor{use(id), columns, 0, -1};
        check(factor.map, columns, count_of(reader.loops));
        for (unsigned variable : columns) factor.level = std::max(factor.level, known_at[variable]);
        for (size_t i = 0; i < loops.size(); ++i) {
            if (reader.loops[i].map == factor.map && loops[i] == columns && factor.loop < 0) {
                factor.loop = static_cast<int>(i);
                factor.level = static_cast<unsigned>(i + 1);
            }
        }
        if (!factor.map->layout().plain()) {
            require(reader.layout.plain() || reader.layout == factor.map->layout(), "factors of different kinds");
            reader.layout = factor.map->layout();
        }
        reader.factors.push_back(std::move(factor));
    }

    void extreme(const std::string& function, size_t id, const Numbers& columns, unsigned value, double fraction,
                 bool descending) {
        Extreme extreme{
            Extreme::Function::CountDistinct, use(id), nullptr, nullptr, value, columns, fraction, descending};
        require(columns.size() == extreme.map->arity() && value < columns.size(), "an extreme reads every column");
        Numbers key;
        for (unsigned i = 0; i < columns.size(); ++i) {
            if (i == value) continue;
            key.push_back(i);
            require(columns[i] < known_at.size() && known_at[columns[i]] <= reader.loops.size(),
                    "an extreme uses a variable that is not known");
        }
        if (function == "count_distinct" || function == "values") {
            if (function == "values") extreme.function = Extreme::Function::Values;
            extreme.groups = key.empty() ? nullptr : extreme.map->index(key);
            require(key.empty() || extreme.groups, "an extreme needs an index that its map does not have");
        } else {
            auto found = std::find_if(std::begin(ORDERED), std::end(ORDERED),
                                      [&](auto& each) { return function == each.first; });
            require(found != std::end(ORDERED), "an extreme is min, max, a percentile, count_distinct or values");
            extreme.function = found->second;
            require(fraction >= 0 && fraction <= 1, "a percentile has a fraction from 0 to 1");
            extreme.sorted = extreme.map->sorted(key, value, extreme.listed());
            require(extreme.sorted, "an extreme needs an ordered index that its map does not have");
        }
        reader.extremes.push_back(std::move(extreme));
    }

    std::vector<Numbers> loops;
};

// What pieces demand of the steps that find them; the layout of rows is that of their product.
void check_pieces(Union& plan, const Trigger& steps) {
    require(steps.emits.size() == plan.pieces.size(), "each piece is emitted");
    require(steps.input_widths.size() == 1 && steps.input_widths[0] <= plan.asked.size(), "pieces are found by inputs");
    std::vector<bool> brought(plan.outputs, false);
    for (size_t number = 0; number < plan.pieces.size(); ++number) {
        const Piece& piece = plan.pieces[number];
        const Delta& found = steps.registers[steps.emits[number]];
        require(number ? piece.parent >= 0 && piece.parent < static_cast<int>(number) : piece.parent == -1,
                "a piece comes after the one that it hangs below");
        size_t width =
            number ? steps.registers[steps.emits[static_cast<size_t>(piece.parent)]].columns.size() : plan.asked.size();
        require(piece.key.size() == piece.above.size() && piece.columns.size() == piece.outputs.size() &&
                    piece.key.size() + piece.columns.size() == found.columns.size() &&
                    (number || piece.key.size() == width),
                "the columns of a piece are shared, or its own");
        for (unsigned column : piece.above) require(column < width, "a piece shares a column that is not there");
        for (unsigned column : piece.key) require(column < found.columns.size(), "a piece has no such column");
        for (unsigned column : piece.columns) require(column < found.columns.size(), "a piece has no such column");
        for (unsigned output : piece.outputs) {
            require(output < plan.outputs && !brought[output], "an output comes from one piece");
            brought[output] = true;
        }
        if (found.layout.plain()) continue;
        require(plan.layout.plain() || plan.layout == found.layout, "pieces of different kinds");
        plan.layout = found.layout;
    }
    require(std::find(brought.begin(), brought.end(), false) == brought.end(), "an output is in no piece");
}

// What a branch demands of its parts, so that reading needs no checks.
void check_branch(Union& plan, const Branch& branch) {
    unsigned known = plan.inputs;
    for (const auto& reader : branch.segments) {
        require(reader->inputs == known, "a segment takes the inputs and what the one before it has kept");
        known = plan.inputs + static_cast<unsigned>(reader->outputs.size());
    }
    for (const auto& guard : branch.guards) require(guard->inputs == plan.inputs, "a guard takes the inputs");
    if (!branch.segments.empty()) require(known == plan.inputs + plan.outputs, "the last segment keeps the outputs");
    if (plan.disjoint) {
        require(branch.segments.size() == 1, "a branch that shares no rows has one segment");
    } else {
        require(branch.probe && (branch.segments.size() || plan.answered || !plan.outputs),
                "rows of several branches are probed");
    }
    if (!plan.pieces.empty()) return check_pieces(plan, *branch.probe);
    require(!branch.probe || branch.probe->emits.size() == 1, "a probe reads, and emits one delta");
    const Layout& layout =
        plan.disjoint ? branch.segments[0]->layout : branch.probe->registers[branch.probe->emits[0]].layout;
    if (plan.branches.size() == 1) plan.layout = layout;
    require(plan.layout == layout, "branches of different kinds");
    if (plan.disjoint) return;
    const Delta& emitted = branch.probe->registers[branch.probe->emits[0]];
    require(emitted.columns.size() == plan.asked.size() + plan.outputs, "a probe emits what it takes");
    require(branch.probe->input_widths.size() == 1 && branch.probe->input_widths[0] <= emitted.columns.size(),
            "a probe takes inputs and outputs");
}

}  // namespace

std::unique_ptr<Trigger> parse_trigger(Kernel& kernel, unsigned registers, const std::vector<std::string>& slots,
                                       const nb::list& steps) {
    TriggerBuilder builder(registers);
    std::vector<Slot> kinds = parse_slots(slots);
    for (nb::handle item : steps) {
        auto step = nb::cast<nb::tuple>(item);
        auto name = field<std::string>(step, 0);
        if (name == "load") {
            builder.load(parse_load(step), kernel.layout_of(kinds));
        } else if (name == "store") {
            builder.store({field<unsigned>(step, 1), field<Numbers>(step, 2), &kernel.heap(field<size_t>(step, 3)),
                           field<bool>(step, 4)});
        } else if (name == "scan") {
            builder.scan(field<unsigned>(step, 1), &kernel.map(field<size_t>(step, 2)), field<bool>(step, 3));
        } else if (name == "join") {
            builder.join(field<unsigned>(step, 1), field<unsigned>(step, 2), field<unsigned>(step, 3),
                         parse_reads(kernel, step[4]));
        } else if (name == "project") {
            builder.project(field<unsigned>(step, 1), field<unsigned>(step, 2), field<Numbers>(step, 3));
        } else if (name == "distinct") {
            builder.distinct(field<unsigned>(step, 1), field<unsigned>(step, 2), field<Numbers>(step, 3));
        } else if (name == "exists") {
            builder.exists(field<unsigned>(step, 1), field<unsigned>(step, 2), &kernel.map(field<size_t>(step, 3)));
        } else if (name == "filter") {
            builder.filter(field<unsigned>(step, 1), field<unsigned>(step, 2), &kernel.map(field<size_t>(step, 3)),
                           field<Numbers>(step, 4), field<bool>(step, 5));
        } else if (name == "add") {
            Check check = parse_check(field<std::string>(step, 3));
            builder.add(field<unsigned>(step, 1), &kernel.map(field<size_t>(step, 2)), check);
        } else if (name == "emit") {
            builder.emit(field<unsigned>(step, 1));
        } else if (name == "watch") {
            builder.watch(field<unsigned>(step, 1), &kernel.partition(field<size_t>(step, 2)), field<Numbers>(step, 3),
                          field<unsigned>(step, 4));
        } else {
            throw std::invalid_argument("there is no step " + name);
        }
    }
    return builder.finish();
}

std::shared_ptr<Reader> parse_reader(Kernel& kernel, unsigned inputs, unsigned variables, std::vector<unsigned> outputs,
                                     const nb::list& loops, const nb::list& factors, const nb::list& extremes,
                                     const nb::list& guards) {
    auto reader = std::make_shared<Reader>();
    reader->inputs = inputs;
    reader->variables = variables;
    require(inputs <= variables, "the inputs are among the variables");
    ReaderBuilder builder{kernel, *reader, std::vector<unsigned>(variables, ~0u), {}};
    for (unsigned i = 0; i < inputs; ++i) builder.known_at[i] = 0;
    for (nb::handle item : guards) {
        auto [map, columns, key] = nb::cast<std::tuple<size_t, Numbers, Numbers>>(item);
        builder.guard(map, columns, key);
    }
    for (nb::handle item : loops) {
        auto [map, columns, fresh] = nb::cast<std::tuple<size_t, Numbers, Numbers>>(item);
        builder.loop(map, columns, fresh);
    }
    for (nb::handle item : factors) {
        auto [map, columns] = nb::cast<std::tuple<size_t, Numbers>>(item);
        builder.factor(map, columns);
    }
    for (nb::handle item : extremes) {
        auto [function, map, columns, value, fraction, descending] =
            nb::cast<std::tuple<std::string, size_t, Numbers, unsigned, double, bool>>(item);
        builder.extreme(function, map, columns, value, fraction, descending);
    }
    for (unsigned variable : outputs) {
        require(variable < variables && builder.known_at[variable] != ~0u, "an output is never set");
    }
    reader->outputs = std::move(outputs);
    reader->find_carried(builder.known_at);
    return reader;
}

std::shared_ptr<Union> single(Kernel& kernel, std::shared_ptr<Reader> reader) {
    auto plan = std::make_shared<Union>(kernel.seed());
    plan->inputs = reader->inputs;
    plan->outputs = static_cast<unsigned>(reader->outputs.size());
    plan->layout = reader->layout;
    plan->branches.emplace_back().segments.push_back(std::move(reader));
    return plan;
}

std::shared_ptr<Union> parse_union(Kernel& kernel, unsigned inputs, unsigned outputs, std::vector<unsigned> asked,
                                   const nb::list& branches, bool disjoint, bool answered, const nb::list& pieces) {
    auto plan = std::make_shared<Union>(kernel.seed());
    plan->answered = answered;
    for (nb::handle item : pieces) {
        auto [parent, key, above, columns, fills] = nb::cast<std::tuple<int, Numbers, Numbers, Numbers, Numbers>>(item);
        plan->pieces.push_back({parent, key, above, columns, fills});
    }
    require(plan->pieces.empty() || answered, "only a plan that is answered has pieces");
    plan->inputs = inputs;
    plan->outputs = outputs;
    plan->asked = std::move(asked);
    plan->disjoint = disjoint;
    for (unsigned input : plan->asked) require(input < inputs, "a probe asks for an input that is not there");
    for (nb::handle item : branches) {
        auto [segments, guards, probe] = nb::cast<std::tuple<Ids, Ids, std::optional<size_t>>>(item);
        Branch& branch = plan->branches.emplace_back();
        for (size_t id : segments) branch.segments.push_back(kernel.take_loops(id));
        for (size_t id : guards) branch.guards.push_back(kernel.take_loops(id));
        if (probe) branch.probe = kernel.take_probe(*probe);
        check_branch(*plan, branch);
    }
    require(!plan->branches.empty(), "a reader has a branch");
    require(!answered || (plan->branches.size() == 1 && !disjoint), "a plan that is answered has one branch");
    return plan;
}

}  // namespace ivme
