"""The jobs of the invented ferry operator whose cron files move to a queue. One row per job; all names and numbers are made up.

Fields: name | cron | kind | table | key column | what it does | where clause | action lines (``;`` between) | trap | follows
"""

# ruff: noqa: E501 (long lines are lines of the story)

from __future__ import annotations

from dataclasses import dataclass

_ROWS = """
expire_holds|*/5 * * * *|cleanup|seat_holds|hold_id|releases seats whose hold ran out|expires_at < :now AND state = 'held'|db.execute("UPDATE seats SET hold_id = NULL WHERE hold_id = :id", id=row["hold_id"]);db.execute("UPDATE seat_holds SET state = 'expired' WHERE hold_id = :id", id=row["hold_id"])|lockfile|
close_sailings|*/10 * * * *|state|sailings|sailing_id|closes check-in twenty minutes before departure|departs_at < :now + interval '20 minutes' AND state = 'open'|sailing = load_sailing(db, row["sailing_id"]);sailing.close(by="scheduler");publish("sailing.closed", sailing_id=row["sailing_id"])|localtime|expire_holds
export_manifests|*/15 * * * *|report|passengers|booking_ref|writes the passenger manifest for the harbour office|sailing_id IN (SELECT sailing_id FROM sailings WHERE state = 'closed' AND manifest_at IS NULL)|line = [row["booking_ref"], row["surname"], row["deck"], row["vehicle_plate"] or ""];writer.writerow(line)|stdout|close_sailings
send_boarding_reminders|0 * * * *|mail|bookings|booking_ref|reminds passengers six hours before boarding|boards_at BETWEEN :now + interval '5 hours' AND :now + interval '6 hours' AND reminded_at IS NULL|message = render("boarding_reminder", booking=row);outbox.put(row["contact_mail"], message);db.execute("UPDATE bookings SET reminded_at = :now WHERE booking_ref = :ref", ref=row["booking_ref"])|twice|close_sailings
sync_tide_tables|20 4 * * *|import|tides|harbour_code|loads the tide tables of the next fourteen days|harbour_code IN (SELECT code FROM harbours WHERE tidal)|feed = fetch_tides(row["harbour_code"], days=14);replace_rows(db, "tides", row["harbour_code"], feed)|timeout|
pull_weather_warnings|*/20 * * * *|import|warnings|area_code|reads wind and sea warnings for the crossing areas|area_code IN (SELECT area_code FROM crossings WHERE active)|for item in fetch_warnings(row["area_code"]):;    upsert(db, "warnings", item, key=("area_code", "issued_at"))|swallow|sync_tide_tables
warn_overbooked|*/30 * * * *|alert|sailings|sailing_id|tells the desk when a deck holds more bookings than places|booked > capacity AND departs_at > :now|desk.alert("overbooked", sailing=row["sailing_id"], over=row["booked"] - row["capacity"])|twice|close_sailings
settle_card_batches|30 1 * * *|finance|card_payments|payment_id|sends yesterday's card payments to the acquirer|captured_on = :yesterday AND batch_id IS NULL|batch.add(payment_id=row["payment_id"], minor_units=row["amount_minor"], currency=row["currency"]);db.execute("UPDATE card_payments SET batch_id = :batch WHERE payment_id = :id", batch=batch.id, id=row["payment_id"])|yesterday|
sweep_orphan_payments|15 2 * * *|finance|card_payments|payment_id|finds payments whose booking was never confirmed and books them back|batch_id IS NOT NULL AND booking_ref NOT IN (SELECT booking_ref FROM bookings)|refund = acquirer.refund(row["payment_id"], reason="orphan");db.execute("UPDATE card_payments SET refunded_at = :now, refund_id = :refund WHERE payment_id = :id", refund=refund.id, id=row["payment_id"])|order|settle_card_batches
mail_daily_takings|0 6 * * *|mail|takings|harbour_code|mails the takings per harbour to the office|day = :yesterday|table.append((row["harbour_code"], row["tickets"], row["amount_minor"]));outbox.put("office@example.com", render("daily_takings", table=table))|mailto|sweep_orphan_payments
recount_loyalty_points|40 3 * * *|aggregate|loyalty_moves|member_id|adds up the points of members who travelled|moved_at >= :since|points = sum_points(db, row["member_id"]);db.execute("UPDATE members SET points = :points WHERE member_id = :id", points=points, id=row["member_id"])|yesterday|
rebuild_search_index|10 3 * * *|aggregate|sailings|sailing_id|rebuilds the index behind the timetable search|departs_at > :now AND published|document = to_document(row);index.add(row["sailing_id"], document)|chdir|
build_price_calendar|50 3 * * *|aggregate|fares|route_code|writes the cheapest fare of each day for the calendar view|valid_to >= :today|cheapest = min(row["fares_minor"]);calendar.put(row["route_code"], row["day"], cheapest)|default|rebuild_search_index
compute_punctuality|5 5 * * *|aggregate|arrivals|sailing_id|works out delay minutes per vessel and route|arrived_at IS NOT NULL AND scored_at IS NULL|delay = minutes_between(row["due_at"], row["arrived_at"]);db.execute("UPDATE arrivals SET delay_min = :delay, scored_at = :now WHERE sailing_id = :id", delay=delay, id=row["sailing_id"])|localtime|
refresh_fuel_surcharge|0 5 1 * *|import|surcharges|route_code|takes the monthly fuel price and sets the surcharge|route_code IN (SELECT route_code FROM routes WHERE surcharge)|price = fetch_fuel_price(month=first_of_month);set_surcharge(db, row["route_code"], price)|timeout|
sync_crew_rosters|25 4 * * *|import|crew_shifts|crew_id|copies shifts from the roster system|valid_on BETWEEN :today AND :today + 7|shifts = fetch_shifts(row["crew_id"]);replace_rows(db, "crew_shifts", row["crew_id"], shifts)|default|
check_gps_heartbeats|*/5 * * * *|alert|vessels|vessel_code|alerts the bridge desk when a vessel stops sending positions|in_service AND last_fix_at < :now - interval '6 minutes'|desk.alert("gps_silent", vessel=row["vessel_code"], since=row["last_fix_at"])|swallow|
rotate_gate_codes|0 0 * * *|state|gates|gate_no|gives every barrier a new opening code|active|code = secrets.randbelow(9000) + 1000;gate_client.set_code(row["gate_no"], code);db.execute("UPDATE gates SET code_set_at = :now WHERE gate_no = :id", id=row["gate_no"])|twice|
retry_failed_webhooks|*/2 * * * *|retry|webhook_deliveries|delivery_id|sends failed webhooks again, with growing pauses|state = 'failed' AND attempts < 8 AND next_try_at < :now|response = post(row["url"], row["payload"], timeout=10);mark(db, row["delivery_id"], response.status_code)|timeout|
archive_old_bookings|0 2 * * 0|cleanup|bookings|booking_ref|moves bookings older than two years to the archive|travelled_on < :today - 730|archive.put(row["booking_ref"], row);db.execute("DELETE FROM bookings WHERE booking_ref = :ref", ref=row["booking_ref"])|exit|purge_audit_log
purge_audit_log|30 2 * * 0|cleanup|audit_log|entry_id|removes audit entries after the legal period|written_at < :today - 3650|db.execute("DELETE FROM audit_log WHERE entry_id = :id", id=row["entry_id"])|lockfile|
prune_thumbnails|0 4 * * 6|cleanup|media_files|file_id|deletes preview pictures nobody asked for in ninety days|kind = 'thumb' AND last_used_at < :now - interval '90 days'|remove_file(row["path"]);db.execute("DELETE FROM media_files WHERE file_id = :id", id=row["file_id"])|chdir|
remind_unpaid_groups|0 9 * * 1-5|mail|group_bookings|group_ref|reminds groups whose deposit is late|deposit_due < :today AND deposit_paid_at IS NULL AND reminders < 3|message = render("deposit_reminder", group=row);outbox.put(row["contact_mail"], message);db.execute("UPDATE group_bookings SET reminders = reminders + 1 WHERE group_ref = :ref", ref=row["group_ref"])|mailto|
export_tax_lines|0 7 2 * *|report|takings|harbour_code|writes the monthly tax lines for the bookkeeper|day >= :month_start AND day < :month_end|writer.writerow([row["harbour_code"], row["day"], row["net_minor"], row["tax_minor"]])|stdout|mail_daily_takings
"""


@dataclass(frozen=True)
class Job:
    name: str
    cron: str
    kind: str
    table: str
    key: str
    does: str
    where: str
    action: tuple[str, ...]
    trap: str
    after: str

    @property
    def title(self) -> str:
        return "".join(word.title() for word in self.name.split("_"))


JOBS = tuple(Job(*row[:7], tuple(row[7].split(";")), *row[8:]) for row in (line.split("|") for line in _ROWS.strip().splitlines()))
