//! The table of steps: what each is called, who builds it, what may follow it, and a line of documentation. The page of
//! compatibility is written from it.
//!
//! A row: name, kind, builder, modulators, operator in an execution profile, who has it, whether filters that follow
//! become part of it, how it is written, what it does.

use super::*;

macro_rules! steps {
    ($($name:literal $kind:ident $build:path, [$($modulator:literal)*] $operator:literal $known:ident
        $($filters:ident)?, $usage:literal, $doc:literal;)+) => {
        pub(crate) const STEPS: &[StepDef] = &[$(StepDef {
            name: $name,
            kind: Kind::$kind,
            build: $build,
            modulators: &[$($modulator),*],
            takes_filters: steps!(@ $($filters)?),
            operator: $operator,
            known: Known::$known,
            usage: $usage,
            doc: $doc,
        }),+];
    };
    (@ filters) => { true };
    (@) => { false };
}

steps! {
    "V" Source graph_source::build, [] "GetVertices" Documented filters,
        "V(id..., [pk, id]...)",
        "All vertices, or those of the ids; in graphs with a partition key a pair names the partition too.";
    "E" Source graph_source::build, [] "GetEdges" Documented filters,
        "E(id..., [pk, id]...)",
        "All edges, or those of the ids; the pair has the partition key of the source.";
    "inject" Source side_effect::build_inject, [] "ConstantSourceOperator" Documented,
        "inject(value...)",
        "Puts values into the stream.";
    "addV" Write mutate::build_add_vertex, ["property" "with"] "AddVertex" Documented,
        "addV(label)",
        "Creates a vertex; property() steps that follow are part of it.";
    "addE" Write mutate::build_add_edge, ["from" "to" "property" "with"] "AddEdge" Documented,
        "addE(label).from(v).to(v)",
        "Creates an edge.";
    "mergeV" Write merge::build, ["option"] "MergeVertex" TinkerPop,
        "mergeV(map).option(onCreate, map).option(onMatch, map)",
        "Finds the vertices that a map describes, or creates one.";
    "mergeE" Write merge::build, ["option"] "MergeEdge" TinkerPop,
        "mergeE(map).option(onCreate, map).option(onMatch, map)",
        "Finds the edges that a map describes, or creates one.";
    "property" Write mutate::build_property, ["property" "with"] "UpdateProperties" Documented,
        "property(cardinality, key, value, metaKey, metaValue...)",
        "Sets a property; several in a row are one write.";
    "drop" Write mutate::build_drop, [] "Drop" Documented,
        "drop()",
        "Removes elements and properties.";
    "out" Move adjacent::build, [] "GetNeighborVertices" Documented filters,
        "out(label...)",
        "To the vertices that edges lead to.";
    "in" Move adjacent::build, [] "GetNeighborVertices" Documented filters,
        "in(label...)",
        "To the vertices that edges come from.";
    "both" Move adjacent::build, [] "GetNeighborVertices" Documented filters,
        "both(label...)",
        "To all neighbours.";
    "outE" Move adjacent::build, [] "GetEdges" Documented filters,
        "outE(label...)",
        "To the edges that leave.";
    "inE" Move adjacent::build, [] "GetEdges" Documented filters,
        "inE(label...)",
        "To the edges that arrive.";
    "bothE" Move adjacent::build, [] "GetEdges" Documented filters,
        "bothE(label...)",
        "To all edges.";
    "to" Move adjacent::build, [] "GetNeighborVertices" TinkerPop filters,
        "to(direction, label...)",
        "To the neighbours in a direction.";
    "toE" Move adjacent::build, [] "GetEdges" TinkerPop filters,
        "toE(direction, label...)",
        "To the edges in a direction.";
    "outV" Move adjacent::build_ends, [] "GetVertices" Documented,
        "outV()",
        "To where an edge comes from.";
    "inV" Move adjacent::build_ends, [] "GetVertices" Documented,
        "inV()",
        "To where an edge leads.";
    "bothV" Move adjacent::build_ends, [] "GetVertices" Documented,
        "bothV()",
        "To both ends of an edge.";
    "otherV" Move adjacent::build_other, [] "GetVertices" Documented,
        "otherV()",
        "To the end that the walk did not come from.";
    "toV" Move adjacent::build_ends, [] "GetVertices" TinkerPop,
        "toV(direction)",
        "To an end of an edge.";
    "has" Filter filter::build_has, [] "FilterOperator" Documented,
        "has(key), has(key, value or P), has(label, key, value or P)",
        "By properties, id or label.";
    "hasLabel" Filter filter::build_has, [] "FilterOperator" Documented,
        "hasLabel(label...)",
        "By label.";
    "hasId" Filter filter::build_has, [] "FilterOperator" Documented,
        "hasId(id...)",
        "By id.";
    "hasNot" Filter filter::build_has, [] "FilterOperator" Documented,
        "hasNot(key)",
        "Without a property.";
    "hasKey" Filter filter::build_property_filter, [] "FilterOperator" Seen,
        "hasKey(key...)",
        "Properties by key.";
    "hasValue" Filter filter::build_property_filter, [] "FilterOperator" Seen,
        "hasValue(value...)",
        "Properties by value.";
    "is" Filter filter::build_is, [] "FilterOperator" Documented,
        "is(value or P)",
        "By the value itself.";
    "filter" Filter filter::build_connective, [] "FilterOperator" TinkerPop,
        "filter(traversal)",
        "Where a traversal finds something.";
    "not" Filter filter::build_connective, [] "FilterOperator" Documented,
        "not(traversal)",
        "Where a traversal finds nothing.";
    "and" Filter filter::build_connective, [] "FilterOperator" Documented,
        "and(traversal...)",
        "Where all find something.";
    "or" Filter filter::build_connective, [] "FilterOperator" Documented,
        "or(traversal...)",
        "Where one finds something.";
    "where" Filter filter::build_where, ["by"] "FilterOperator" Documented,
        "where(traversal), where(P), where(label, P)",
        "By a traversal, or against what labels stand for.";
    "coin" Filter filter::build_coin, [] "FilterOperator" Seen,
        "coin(probability)",
        "By chance.";
    "simplePath" Filter filter::build_path_filter, ["by" "from" "to"] "FilterOperator" Seen,
        "simplePath()",
        "Walks without repetition.";
    "cyclicPath" Filter filter::build_path_filter, ["by" "from" "to"] "FilterOperator" Seen,
        "cyclicPath()",
        "Walks with repetition.";
    "timeLimit" Filter filter::build_time_limit, [] "FilterOperator" TinkerPop,
        "timeLimit(ms)",
        "What comes in time.";
    "all" Filter filter::build_members, [] "FilterOperator" TinkerPop,
        "all(P)",
        "Collections of which all members fit.";
    "any" Filter filter::build_members, [] "FilterOperator" TinkerPop,
        "any(P)",
        "Collections of which one member fits.";
    "none" Filter filter::build_members, [] "FilterOperator" TinkerPop,
        "none(P)",
        "Collections of which no member fits.";
    "discard" Filter filter::build_discard, [] "FilterOperator" TinkerPop,
        "discard()",
        "Nothing.";
    "range" Range range::build_range, [] "Range" Documented,
        "range(scope, from, to)",
        "Those from one place to before another.";
    "limit" Range range::build_range, [] "Limit" Documented,
        "limit(scope, count)",
        "The first.";
    "skip" Range range::build_range, [] "Skip" TinkerPop,
        "skip(scope, count)",
        "All but the first.";
    "tail" Barrier range::build_tail, [] "Tail" Seen,
        "tail(scope, count)",
        "The last.";
    "sample" Barrier range::build_sample, ["by"] "Sample" Documented,
        "sample(scope, count)",
        "Some by chance.";
    "dedup" Range range::build_dedup, ["by"] "Deduplicate" Documented,
        "dedup(scope, label...)",
        "Each once.";
    "map" Map branch::build_map, [] "Map" Documented,
        "map(traversal)",
        "The first that a traversal finds.";
    "flatMap" FlatMap branch::build_map, [] "FlatMap" Seen,
        "flatMap(traversal)",
        "All that a traversal finds.";
    "local" Branch branch::build_local, [] "Local" Documented,
        "local(traversal)",
        "A traversal for each by itself.";
    "union" Branch branch::build_union, [] "Union" Documented,
        "union(traversal...)",
        "What all traversals find.";
    "coalesce" Branch branch::build_coalesce, [] "Coalesce" Documented,
        "coalesce(traversal...)",
        "What the first finds that finds something.";
    "optional" Branch branch::build_optional, [] "Optional" Documented,
        "optional(traversal)",
        "What a traversal finds, or the same.";
    "choose" Branch branch::build_choose, ["option"] "Choose" Seen,
        "choose(test, traversal, traversal), choose(value).option(value, traversal)",
        "One way or another.";
    "branch" Branch branch::build_branch, ["option"] "Branch" Seen,
        "branch(value).option(value, traversal)",
        "All ways that fit.";
    "repeat" Branch repeat::build, ["until" "emit" "times"] "Repeat" Documented,
        "repeat(traversal).times(n), .until(test), .emit(test)",
        "Again and again, level by level.";
    "loops" Map repeat::build_loops, [] "Loops" TinkerPop,
        "loops(name)",
        "How often the loop was gone through.";
    "sideEffect" SideEffect branch::build_map, [] "SideEffect" Seen,
        "sideEffect(traversal)",
        "Does something beside.";
    "count" Barrier reduce::build, [] "CountOperator" Documented,
        "count(scope)",
        "How many.";
    "sum" Barrier reduce::build, [] "SumOperator" Seen,
        "sum(scope)",
        "The sum.";
    "min" Barrier reduce::build, [] "MinOperator" Seen,
        "min(scope)",
        "The least.";
    "max" Barrier reduce::build, [] "MaxOperator" Seen,
        "max(scope)",
        "The greatest.";
    "mean" Barrier reduce::build, [] "MeanOperator" Seen,
        "mean(scope)",
        "The average.";
    "fold" Barrier reduce::build_fold, [] "ProjectAggregation" Documented,
        "fold(seed, operator)",
        "All as one list.";
    "unfold" FlatMap side_effect::build_unfold, [] "Unfold" Documented,
        "unfold()",
        "The members of a collection, the entries of a map.";
    "group" Barrier group::build, ["by"] "GroupOperator" Documented,
        "group(key).by(key).by(value)",
        "Groups as a map.";
    "groupCount" Barrier group::build, ["by"] "GroupCountOperator" Seen,
        "groupCount(key).by(key)",
        "How many of each.";
    "aggregate" Barrier side_effect::build_aggregate, ["by"] "Aggregate" Seen,
        "aggregate(key).by(value)",
        "Keeps all beside.";
    "store" SideEffect side_effect::build_aggregate, ["by"] "Store" Documented,
        "store(key).by(value)",
        "Keeps each beside as it passes.";
    "cap" Barrier side_effect::build_cap, [] "Cap" Seen,
        "cap(key...)",
        "What was kept beside.";
    "tree" Barrier side_effect::build_tree, ["by"] "TreeOperator" Documented,
        "tree(key).by(value)",
        "Paths as a tree.";
    "subgraph" SideEffect side_effect::build_subgraph, [] "Subgraph" TinkerPop,
        "subgraph(key)",
        "Keeps edges and their ends beside, as a graph.";
    "sack" SideEffect side_effect::build_sack, ["by"] "Sack" TinkerPop,
        "sack(operator).by(value)",
        "What a walk carries with it.";
    "barrier" Barrier side_effect::build_barrier, [] "Barrier" Seen,
        "barrier(normSack)",
        "Waits for all, and makes one of those alike.";
    "order" Barrier project::build_order, ["by"] "OrderOperator" Documented,
        "order(scope).by(key, asc or desc)",
        "In order.";
    "project" Map project::build_project, ["by"] "ProjectOperator" Documented,
        "project(key...).by(value)",
        "A map of several views.";
    "select" Map project::build_select, ["by"] "SelectOperator" Documented,
        "select(pop, label...).by(value), select(keys), select(values)",
        "What labels stand for; parts of a map.";
    "path" Map project::build_path, ["by" "from" "to"] "PathOperator" Documented,
        "path().by(value)",
        "The way.";
    "constant" Map project::build_constant, [] "ConstantOperator" Documented,
        "constant(value)",
        "Always the same.";
    "identity" Map project::build_identity, [] "Identity" Seen,
        "identity()",
        "The same.";
    "index" Map project::build_index, ["with"] "Index" TinkerPop,
        "index().with(WithOptions.indexer, kind)",
        "Members with their places.";
    "math" Map math::build, ["by"] "MathOperator" TinkerPop,
        "math(expression).by(value)",
        "Arithmetic.";
    "match" FlatMap pattern::build, [] "MatchOperator" TinkerPop,
        "match(pattern...)",
        "Patterns that share variables.";
    "values" FlatMap properties::build, [] "GetValues" Documented,
        "values(key...)",
        "Values of properties.";
    "properties" FlatMap properties::build, [] "GetProperties" Documented,
        "properties(key...)",
        "Properties.";
    "valueMap" Map properties::build_map, ["by" "with"] "ValueMap" Documented,
        "valueMap(tokens, key...)",
        "Values by key.";
    "propertyMap" Map properties::build_map, ["by" "with"] "PropertyMap" Seen,
        "propertyMap(key...)",
        "Properties by key.";
    "elementMap" Map properties::build_element_map, [] "ElementMap" TinkerPop,
        "elementMap(key...)",
        "Id, label, ends and single values in one map.";
    "id" Map properties::build_token, [] "GetId" Documented,
        "id()",
        "The id.";
    "label" Map properties::build_token, [] "GetLabel" Documented,
        "label()",
        "The label.";
    "key" Map properties::build_token, [] "GetKey" Seen,
        "key()",
        "The key of a property.";
    "value" Map properties::build_token, [] "GetValue" Seen,
        "value()",
        "The value of a property.";
    "element" Map properties::build_element, [] "GetElement" TinkerPop,
        "element()",
        "Whose property it is.";
    "asString" Map convert::build_string, [] "Convert" TinkerPop,
        "asString(scope)",
        "As a text.";
    "asNumber" Map convert::build_number, [] "Convert" TinkerPop,
        "asNumber(type)",
        "As a number.";
    "asBool" Map convert::build_bool, [] "Convert" TinkerPop,
        "asBool()",
        "As a boolean.";
    "asDate" Map convert::build_date, [] "Convert" TinkerPop,
        "asDate()",
        "As a date.";
    "dateAdd" Map convert::build_date_add, [] "DateAdd" TinkerPop,
        "dateAdd(unit, count)",
        "A later or earlier date.";
    "dateDiff" Map convert::build_date_diff, [] "DateDiff" TinkerPop,
        "dateDiff(date)",
        "Milliseconds between dates.";
    "concat" Map strings::build_concat, [] "Concat" TinkerPop,
        "concat(text or traversal...)",
        "Texts put together.";
    "format" Map strings::build_format, ["by"] "Format" TinkerPop,
        "format(template).by(value)",
        "A text with values in it.";
    "toUpper" Map strings::build, [] "Text" TinkerPop,
        "toUpper(scope)",
        "In capitals.";
    "toLower" Map strings::build, [] "Text" TinkerPop,
        "toLower(scope)",
        "In small letters.";
    "trim" Map strings::build, [] "Text" TinkerPop,
        "trim(scope)",
        "Without blanks at both ends.";
    "lTrim" Map strings::build, [] "Text" TinkerPop,
        "lTrim(scope)",
        "Without blanks at the beginning.";
    "rTrim" Map strings::build, [] "Text" TinkerPop,
        "rTrim(scope)",
        "Without blanks at the end.";
    "length" Map strings::build, [] "Text" TinkerPop,
        "length(scope)",
        "How long a text is.";
    "replace" Map strings::build, [] "Text" TinkerPop,
        "replace(scope, from, to)",
        "One text for another.";
    "split" Map strings::build, [] "Text" TinkerPop,
        "split(scope, separator)",
        "A text in parts.";
    "substring" Map strings::build, [] "Text" TinkerPop,
        "substring(scope, from, to)",
        "A part of a text.";
    "reverse" Map strings::build_reverse, [] "Reverse" TinkerPop,
        "reverse()",
        "Backwards.";
    "combine" Map lists::build, [] "Lists" TinkerPop,
        "combine(list)",
        "Both lists.";
    "merge" Map lists::build, [] "Lists" TinkerPop,
        "merge(list or map)",
        "Both as a set; both maps.";
    "difference" Map lists::build, [] "Lists" TinkerPop,
        "difference(list)",
        "What the other has not.";
    "disjunct" Map lists::build, [] "Lists" TinkerPop,
        "disjunct(list)",
        "What only one has.";
    "intersect" Map lists::build, [] "Lists" TinkerPop,
        "intersect(list)",
        "What both have.";
    "product" Map lists::build, [] "Lists" TinkerPop,
        "product(list)",
        "All pairs.";
    "conjoin" Map lists::build_conjoin, [] "Lists" TinkerPop,
        "conjoin(separator)",
        "The members as one text.";
    "fail" SideEffect other::build_fail, [] "Fail" TinkerPop,
        "fail(message)",
        "Ends with an error.";
    "executionProfile" Barrier project::build_identity, [] "ProjectOperator" Documented,
        "executionProfile()",
        "Runs the traversal and tells how.";
    "profile" Barrier project::build_identity, [] "Profile" TinkerPop,
        "profile()",
        "Runs the traversal and tells how.";
    "call" Refused other::build_refused, ["with"] "Refused" Nobody,
        "call(service)",
        "Not offered.";
    "io" Refused other::build_refused, ["with" "read" "write"] "Refused" Nobody,
        "io(file)",
        "Not offered.";
    "pageRank" Refused other::build_refused, ["with" "by"] "Refused" Nobody,
        "pageRank()",
        "Not offered: needs a graph computer.";
    "peerPressure" Refused other::build_refused, ["with" "by"] "Refused" Nobody,
        "peerPressure()",
        "Not offered: needs a graph computer.";
    "connectedComponent" Refused other::build_refused, ["with" "by"] "Refused" Nobody,
        "connectedComponent()",
        "Not offered: needs a graph computer.";
    "shortestPath" Refused other::build_refused, ["with" "by"] "Refused" Nobody,
        "shortestPath()",
        "Not offered: write it with repeat().";
}
