//! The screen in memory: views as snapshots, `update` as (model, messages) -> expectations, every size, every depth.

mod console;
mod fixture;
mod histories;
mod link;
mod moving;
mod podium;
mod screenshots;
mod sizes;
mod stage;
mod svg;
mod views;
